#include "ProgramWriter.h"

#include "par/Dialect/Calls.h"
#include "par/Dialect/ExchangeSides.h"
#include "par/Phases/Schedule/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_BUILDPROGRAMSPASS
#include "par/Phases/Schedule/Passes.h.inc"

/// One microbatch's type of a value (m, B/m, ...).
static DistType dropMicrobatches(DistType dist) {
  RankedTensorType type = dist.getTensor();
  ShardingAttr sharding = dist.getSharding();
  return DistType::get(dist.getContext(), RankedTensorType::get(type.getShape().drop_front(), type.getElementType()),
                       dist.getStage(),
                       ShardingAttr::get(dist.getContext(), sharding.getDims().drop_front(), sharding.getUnreduced()));
}

/// The state buffer of a variable on a stage, with a slot for each of the microbatches that carry it on. Several stages
/// of a program share it.
static LogicalResult addState(OpBuilder &builder, VariableOp variable, DistType dist, StageOp stage,
                              int64_t microbatches, int64_t calls, llvm::StringMap<DistType> &known) {
  if (microbatches > 0)
    dist = dropMicrobatches(dist);
  BufferPlan plan = planState(variable, dist, dist.getSharding().getLocalType(dist.getTensor(), stage.getMesh()),
                              microbatches, calls);
  auto [other, first] = known.try_emplace(plan.name, dist);
  if (!first && other->second.getSharding() != dist.getSharding())
    return variable.emitError() << "lies on @" << stage.getSymName() << " in other parts than on "
                                << other->second.getStage()
                                << ", which is on the same ranks: not supported yet by Schedule";
  if (first)
    BufferOp::create(builder, variable.getLoc(), plan.name, plan.kind, builder.getStringAttr(plan.of), false,
                     plan.perVersion  ? SlotIndex::version
                     : plan.depth > 1 ? SlotIndex::microbatch
                                      : SlotIndex::none,
                     plan.depth, plan.type, TypeAttr::get(dist), DenseI64ArrayAttr());
  return success();
}

/// One empty program for each list of ranks, with its variables.
static FailureOr<SmallVector<ProgramOp>> createPrograms(ModuleOp module, const SharedVariables &shared) {
  SmallVector<ProgramOp> programs;
  int64_t calls = 1;
  for (StepOp step : module.getOps<StepOp>())
    calls = std::max(calls, getCalls(step));
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  for (ArrayRef<StageOp> alike : getStagesByRanks(module)) {
    StageOp first = alike.front();
    auto names = llvm::map_to_vector(
        alike, [](StageOp stage) -> Attribute { return FlatSymbolRefAttr::get(stage.getSymNameAttr()); });
    auto program = ProgramOp::create(builder, first.getLoc(), (first.getSymName() + ".program").str(),
                                     builder.getArrayAttr(names), first.getRanks());
    program.getBody().emplaceBlock();
    auto inner = OpBuilder::atBlockEnd(&program.getBody().front());
    llvm::StringMap<DistType> known;
    for (auto variable : module.getOps<VariableOp>())
      for (Attribute type : variable.getAt().value_or(ArrayAttr::get(module.getContext(), {}))) {
        auto dist = cast<DistType>(cast<TypeAttr>(type).getValue());
        VariableOp kept = shared.at(FlatSymbolRefAttr::get(variable), dist);
        for (StageOp stage : alike)
          if (dist.getStage().getAttr() == stage.getSymNameAttr() &&
              failed(addState(inner, kept, dist, stage, shared.microbatchesOf(kept), calls, known)))
            return failure();
      }
    programs.push_back(program);
  }
  return programs;
}

/// Fails if the module is not in the form that Partition leaves.
static LogicalResult checkInput(ModuleOp module, ArrayRef<StageOp> stages) {
  if (stages.empty())
    return module.emitError() << "has no par.stage; Annotate makes at least one";
  auto devices = getStagesByRanks(module);
  for (ArrayRef<StageOp> alike : devices)
    for (StageOp stage : alike)
      if (stage.getMesh() != StageOp(alike.front()).getMesh())
        return stage.emitError() << "has mesh " << stage.getMesh() << ", @" << StageOp(alike.front()).getSymName()
                                 << " on the same ranks " << StageOp(alike.front()).getMesh();
  for (StageOp stage : stages)
    if (StageOp first = stages.front(); stage.getMesh() != first.getMesh() && devices.size() < stages.size())
      return stage.emitError()
             << "has mesh " << stage.getMesh() << ", @" << first.getSymName() << " " << first.getMesh()
             << ": stages of different meshes with several stages on the same ranks are not supported yet by "
                "Schedule";
  WalkResult transfers = module.walk([](TransferOp transfer) -> WalkResult {
    DistType from = transfer.getOperand().getType(), to = transfer.getType();
    MeshAttr here = getMesh(transfer, from.getStage()), there = getMesh(transfer, to.getStage());
    if (here == there || findExchange(to.getTensor(), from.getSharding(), here, to.getSharding(), there))
      return success();
    return transfer.emitError() << "crosses to another mesh, and shards there are not made up of those here; "
                                   "-par-nest-transfers must come before";
  });
  if (transfers.wasInterrupted())
    return failure();
  for (FragmentOp fragment : module.getOps<FragmentOp>())
    if (!fragment.getLocal())
      return fragment.emitError() << "is not local; run Partition before Schedule";
  return success();
}

namespace {
struct BuildProgramsPass : impl::BuildProgramsPassBase<BuildProgramsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<StageOp> stages(module.getOps<StageOp>());
    auto costs = CostTable::find(hardware);
    if (!costs) {
      module.emitError() << llvm::toString(costs.takeError());
      return signalPassFailure();
    }
    if (failed(checkInput(module, stages)))
      return signalPassFailure();
    SharedVariables shared(module);
    auto programs = createPrograms(module, shared);
    if (failed(programs))
      return signalPassFailure();
    int64_t tag = 0;
    for (StepOp step : llvm::make_early_inc_range(module.getOps<StepOp>())) {
      auto tasks = StepTasks::compute(step, module, shared);
      if (failed(tasks))
        return signalPassFailure();
      auto order = StepOrder::compute(*tasks, schedule, *costs);
      if (failed(order))
        return signalPassFailure();
      auto buffers = Buffers::compute(*tasks, *order);
      if (failed(buffers))
        return signalPassFailure();
      ProgramWriter writer(*tasks, *order, *buffers, tag);
      for (auto [index, program] : llvm::enumerate(*programs))
        writer.write(program, index);
      step.erase();
    }
  }
};
} // namespace

} // namespace par
