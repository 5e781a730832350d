#include "par/Dialect/Par.h"
#include "par/Phases/Propagate/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_DROPABSENTAXESPASS
#include "par/Phases/Propagate/Passes.h.inc"

static SmallVector<StringAttr> keep(ArrayRef<StringAttr> axes, MeshAttr mesh) {
  return llvm::filter_to_vector(axes, [&](StringAttr axis) { return mesh.getSize(axis) > 1; });
}

/// The sharding without the axes of which a mesh has one rank.
static ShardingAttr keep(ShardingAttr sharding, MeshAttr mesh) {
  SmallVector<DimShardingAttr> dims;
  for (DimShardingAttr dim : sharding.getDims())
    dims.push_back(DimShardingAttr::get(sharding.getContext(), keep(dim.getAxes(), mesh), dim.getOpen()));
  return ShardingAttr::get(sharding.getContext(), dims, keep(sharding.getUnreduced(), mesh));
}

static MeshAttr keep(MeshAttr mesh) {
  SmallVector<StringAttr> names = keep(mesh.getNames(), mesh);
  auto sizes = llvm::map_to_vector(names, [&](StringAttr name) { return mesh.getSize(name); });
  return MeshAttr::get(mesh.getContext(), names, sizes);
}

/// Merges two places of a variable that are now equal.
static void joinPlaces(VariableOp variable) {
  if (!variable.getAt())
    return;
  llvm::SetVector<Attribute> places(variable.getAtAttr().begin(), variable.getAtAttr().end());
  variable.setAtAttr(ArrayAttr::get(variable.getContext(), places.getArrayRef()));
}

static void eraseReshards(StepOp step) {
  step.walk([](ReshardOp reshard) {
    if (reshard.getOperand().getType() != reshard.getType())
      return;
    reshard.replaceAllUsesWith(reshard.getOperand());
    reshard.erase();
  });
}

namespace {
struct DropAbsentAxesPass : impl::DropAbsentAxesPassBase<DropAbsentAxesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::DenseMap<Attribute, MeshAttr> meshes; // by stage
    for (auto stage : module.getOps<StageOp>())
      meshes[stage.getSymNameAttr()] = stage.getMesh();
    if (llvm::all_of(meshes, [](const auto &entry) { return keep(entry.second) == entry.second; }))
      return;
    AttrTypeReplacer places; // types that name their stage
    places.addReplacement([&](DistType dist) -> std::optional<std::pair<Type, WalkResult>> {
      MeshAttr mesh = meshes.lookup(dist.getStage().getAttr());
      if (!dist.getSharding() || !mesh)
        return std::nullopt;
      return std::pair(dist.withSharding(keep(dist.getSharding(), mesh)), WalkResult::skip());
    });
    for (Operation &op : *module.getBody()) {
      if (isa<StepOp, VariableOp>(op))
        places.recursivelyReplaceElementsIn(&op, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
      if (auto variable = dyn_cast<VariableOp>(op))
        joinPlaces(variable);
      if (auto step = dyn_cast<StepOp>(op))
        eraseReshards(step);
      if (auto fragment = dyn_cast<FragmentOp>(op)) {
        AttrTypeReplacer inside;
        inside.addReplacement([&](ShardingAttr sharding) {
          return std::pair<Attribute, WalkResult>(keep(sharding, meshes.lookup(fragment.getStageAttr().getAttr())),
                                                  WalkResult::skip());
        });
        inside.recursivelyReplaceElementsIn(fragment);
      }
    }
    for (auto stage : module.getOps<StageOp>())
      stage.setMeshAttr(keep(stage.getMesh()));
  }
};
} // namespace

} // namespace par
