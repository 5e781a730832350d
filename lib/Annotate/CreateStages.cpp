#include "PlanSource.h"

#include "par/Solver/MeshFactor.h"
#include "par/Solver/OrderTable.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_CREATESTAGESPASS
#include "par/Annotate/Passes.h.inc"

/// Coordinate of a rank on an axis of the plan's mesh: the last axis varies fastest.
static int64_t coordinateOn(const Plan &plan, StringRef axis, int64_t rank) {
  int64_t inner = *plan.ranks;
  for (const auto &[name, size] : plan.mesh) {
    inner /= *size;
    if (name == axis)
      return rank / inner % *size;
  }
  return 0;
}

/// The mesh of every stage: all axes but that of the pipeline, of prime sizes.
static MeshAttr stageMesh(const Plan &plan, MLIRContext *context) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  for (const auto &[axis, size] : plan.mesh) {
    if (axis == *plan.pipeline.over)
      continue;
    for (auto &[name, prime] : refineAxis(axis, *size)) {
      names.push_back(StringAttr::get(context, name));
      sizes.push_back(prime);
    }
  }
  return MeshAttr::get(context, names, sizes);
}

namespace {
struct CreateStagesPass : PlanPass<impl::CreateStagesPassBase<CreateStagesPass>> {
  using PlanPass::PlanPass;

  LogicalResult apply(const ModelPlan &model) override {
    ModuleOp module = getOperation();
    if (!module.getOps<StageOp>().empty()) {
      (*module.getOps<StageOp>().begin())->emitOpError("stands in the module before Annotate");
      return failure();
    }
    const Plan &plan = model.plan;
    MeshAttr mesh = stageMesh(plan, &getContext());
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    std::vector<SmallVector<int64_t>> members(plan.axisSize(*plan.pipeline.over));
    for (int64_t rank = 0; rank < *plan.ranks; ++rank)
      members[coordinateOn(plan, *plan.pipeline.over, rank)].push_back(rank);
    Location loc = planLocation(plan.pipeline.stages.origin, module);
    auto order = OrderTableProblem::make(*plan.pipeline.schedule, *plan.pipeline.stages, members.size(),
                                         **plan.batch.microbatches);
    if (!order)
      return emitError(loc) << llvm::toString(order.takeError());
    for (unsigned stage = 0; stage < order->stages; ++stage)
      StageOp::create(builder, loc, "s" + std::to_string(stage), mesh, members[order->deviceOf(stage)]);
    return success();
  }
};
} // namespace

std::unique_ptr<Pass> createCreateStagesPass(const ModelPlan &plan) {
  return makePlanPass<CreateStagesPass>(plan);
}

} // namespace par
