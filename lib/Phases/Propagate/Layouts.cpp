#include "par/Phases/Propagate/Layouts.h"

using namespace mlir;

namespace par {

Layouts::Layouts(ModuleOp module, const SymbolTable &symbols, ArrayRef<StringAttr> parameterAxes)
    : symbols(symbols), parameterAxes(parameterAxes) {
  for (StageOp stage : module.getOps<StageOp>())
    meshes.insert(stage.getMesh());
}

Layout &Layouts::find(Value value) {
  void *leader = classes.getOrInsertLeaderValue(value.getAsOpaquePointer());
  std::unique_ptr<Layout> &layout = layouts[leader];
  if (!layout) {
    layout = std::make_unique<Layout>();
    layout->dims.resize(getTensorType(value.getType()).getRank());
    layout->fixed.resize(layout->dims.size());
  }
  return *layout;
}

Layout &Layouts::change(Value value) {
  Layout &layout = find(value);
  layout.changed = ++clock;
  return layout;
}

MeshAttr Layouts::meshOf(Value value) const {
  auto dist = dyn_cast<DistType>(value.getType());
  FlatSymbolRefAttr stage =
      dist ? dist.getStage() : cast<FragmentOp>(value.getParentBlock()->getParentOp()).getStageAttr();
  return symbols.lookup<StageOp>(stage.getAttr()).getMesh();
}

/// Maximum number of shards that the axes give on any stage: values in a class have one sharding on several stages.
int64_t Layouts::maxShards(ArrayRef<StringAttr> axes) const {
  int64_t most = 1;
  for (MeshAttr mesh : meshes)
    most = std::max(most, mesh.getSize(axes));
  return most;
}

bool Layouts::extend(Layout &layout, RankedTensorType type, MeshAttr mesh, int64_t dim, ArrayRef<StringAttr> axes) {
  Axes &now = layout.dims[dim];
  if (layout.fixed[dim] || axes.size() <= now.size() || !startsWith(axes, now))
    return false;
  bool changed = false;
  for (StringAttr axis : axes.drop_front(now.size())) {
    bool used = llvm::any_of(layout.dims, [&](const Axes &other) { return llvm::is_contained(other, axis); });
    int64_t shards = maxShards(now) * maxShards(axis);
    bool barred = layout.gathered && llvm::is_contained(parameterAxes, axis);
    if (used || barred || !mesh.getSize(axis) || type.getDimSize(dim) < shards)
      break;
    now.push_back(axis);
    changed = true;
  }
  if (changed)
    layout.changed = ++clock;
  return changed;
}

bool Layouts::extend(Value value, int64_t dim, ArrayRef<StringAttr> axes) {
  return extend(find(value), getTensorType(value.getType()), meshOf(value), dim, axes);
}

} // namespace par
