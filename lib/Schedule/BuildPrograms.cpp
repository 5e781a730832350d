#include "ProgramWriter.h"
#include "par/Schedule/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_BUILDPROGRAMSPASS
#include "par/Schedule/Passes.h.inc"

/// One empty program a stage, with the variables that live there.
static SmallVector<ProgramOp> createPrograms(ModuleOp module, ArrayRef<StageOp> stages) {
  SmallVector<ProgramOp> programs;
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  for (StageOp stage : stages) {
    auto program = ProgramOp::create(builder, stage.getLoc(), (stage.getSymName() + ".program").str(),
                                     stage.getSymName(), stage.getRanks());
    program.getBody().emplaceBlock();
    auto inner = OpBuilder::atBlockEnd(&program.getBody().front());
    for (auto variable : module.getOps<VariableOp>()) {
      for (Attribute type : variable.getAt().value_or(ArrayAttr::get(module.getContext(), {}))) {
        auto dist = cast<DistType>(cast<TypeAttr>(type).getValue());
        if (dist.getStage().getAttr() != stage.getSymNameAttr())
          continue;
        BufferPlan plan =
            planState(variable, dist, dist.getSharding().getLocalType(dist.getTensor(), stage.getMesh()));
        BufferOp::create(inner, variable.getLoc(), plan.name, plan.kind, inner.getStringAttr(plan.of), false,
                         SlotIndex::none, 1, plan.type, TypeAttr::get(dist), DenseI64ArrayAttr());
      }
    }
    programs.push_back(program);
  }
  return programs;
}

/// Fails where Schedule meets what Partition does not leave.
static LogicalResult checkInput(ModuleOp module, ArrayRef<StageOp> stages) {
  if (stages.empty())
    return module.emitError() << "has no par.stage; Annotate makes at least one";
  for (StageOp stage : stages)
    if (stage.getRanks().size() != StageOp(stages.front()).getRanks().size())
      return stage.emitError() << "has " << stage.getRanks().size() << " ranks, @"
                               << StageOp(stages.front()).getSymName() << " has "
                               << StageOp(stages.front()).getRanks().size()
                               << ": stages of different size are not supported yet by Schedule";
  for (FragmentOp fragment : module.getOps<FragmentOp>())
    if (!fragment.getLocal())
      return fragment.emitError() << "is not local; Schedule stands behind Partition";
  return success();
}

namespace {
struct BuildProgramsPass : impl::BuildProgramsPassBase<BuildProgramsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<StageOp> stages(module.getOps<StageOp>());
    auto machine = Hardware::find(hardware);
    if (!machine) {
      module.emitError() << llvm::toString(machine.takeError());
      return signalPassFailure();
    }
    if (failed(checkInput(module, stages)))
      return signalPassFailure();
    SmallVector<ProgramOp> programs = createPrograms(module, stages);
    int64_t tag = 0;
    for (StepOp step : llvm::make_early_inc_range(module.getOps<StepOp>())) {
      auto activities = Activities::compute(step, stages);
      if (failed(activities))
        return signalPassFailure();
      auto order = StepOrder::compute(*activities, schedule, *machine);
      if (failed(order))
        return signalPassFailure();
      Buffers buffers = Buffers::compute(*activities, *order);
      ProgramWriter writer(*activities, *order, buffers, tag);
      for (auto [index, program] : llvm::enumerate(programs))
        writer.write(program, index);
      step.erase();
    }
  }
};
} // namespace

void buildSchedulePipeline(OpPassManager &manager, const BuildProgramsPassOptions &options) {
  manager.addPass(createBuildProgramsPass(options));
  manager.addPass(createVerifySchedulePass());
}

} // namespace par
