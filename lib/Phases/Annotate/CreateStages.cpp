#include "PlanSource.h"

#include "par/Base/MeshFactor.h"
#include "par/Solver/Order/OrderTable.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_CREATESTAGESPASS
#include "par/Phases/Annotate/Passes.h.inc"

/// Coordinate of a place on an axis of the plan's mesh: the last axis varies fastest.
static int64_t coordinateOn(const Plan &plan, StringRef axis, int64_t place) {
  int64_t inner = *plan.ranks;
  for (const auto &[name, size] : plan.mesh) {
    inner /= *size;
    if (name == axis)
      return place / inner % *size;
  }
  return 0;
}

/// The mesh of a stage: all axes but the pipeline's, split into prime sizes. If stages have meshes of their own, each
/// mesh has the axes of all stages, split alike; an axis that a stage lacks has size 1 there. So one sharding is valid
/// on all stages.
static MeshAttr stageMesh(const Plan &plan, PlanMesh mesh, MLIRContext *context) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  for (const std::string &axis : plan.axes())
    if (llvm::none_of(mesh, [&](const auto &own) { return own.first == axis; }))
      mesh.push_back({axis, {1, Origin()}});
  for (const auto &[axis, size] : mesh) {
    if (axis == *plan.pipeline.over)
      continue;
    for (auto &[name, prime] : refineAxis(axis, *size, plan.axisSize(axis))) {
      names.push_back(StringAttr::get(context, name));
      sizes.push_back(prime);
    }
  }
  return MeshAttr::get(context, names, sizes);
}

/// The ranks of each device, in the order of its stages' mesh: those of a coordinate on the pipeline's axis, or
/// consecutive ranks for each mesh.
static std::vector<SmallVector<int64_t>> membersOf(const Plan &plan) {
  std::vector<SmallVector<int64_t>> members(plan.numDevices());
  int64_t next = 0;
  for (auto [device, mesh] : llvm::enumerate(*plan.pipeline.meshes))
    for (int64_t rank = 0, end = ranksOf(mesh); rank < end; ++rank)
      members[device].push_back(next++);
  if (!plan.pipeline.meshes->empty())
    return members;
  for (auto [place, rank] : llvm::enumerate(numberRanks(plan.mesh, plan.numberingMesh())))
    members[coordinateOn(plan, *plan.pipeline.over, place)].push_back(rank);
  return members;
}

namespace {
struct CreateStagesPass : PlanPass<impl::CreateStagesPassBase<CreateStagesPass>> {
  using PlanPass::PlanPass;

  LogicalResult apply(const ModelPlan &model) override {
    ModuleOp module = getOperation();
    if (!module.getOps<StageOp>().empty()) {
      (*module.getOps<StageOp>().begin())->emitOpError("is in the module before Annotate");
      return failure();
    }
    const Plan &plan = model.plan;
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    std::vector<SmallVector<int64_t>> members = membersOf(plan);
    const Origin &said = plan.pipeline.meshes->empty() ? plan.pipeline.stages.origin : plan.pipeline.meshes.origin;
    Location loc = planLocation(said, module);
    auto order = OrderTableProblem::make(*plan.pipeline.schedule, *plan.pipeline.stages, members.size(), plan.rounds());
    if (!order)
      return emitError(loc) << llvm::toString(order.takeError());
    for (unsigned stage = 0; stage < order->stages; ++stage) {
      unsigned device = order->deviceOf(stage);
      const PlanMesh &mesh = plan.pipeline.meshes->empty() ? plan.mesh : (*plan.pipeline.meshes)[device];
      std::string name = "s" + std::to_string(stage);
      while (module.lookupSymbol(name)) // a parameter may be called so
        name += "_";
      StageOp::create(builder, loc, name, stageMesh(plan, mesh, &getContext()), members[device]);
    }
    return success();
  }
};
} // namespace

std::unique_ptr<Pass> createCreateStagesPass(const ModelPlan &plan) { return makePlanPass<CreateStagesPass>(plan); }

} // namespace par
