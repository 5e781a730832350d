#include "par/Phases/Propagate/FactorAxes.h"

#include "par/Dialect/Interfaces/Cost.h"

using namespace mlir;

namespace par {

bool startsWith(ArrayRef<StringAttr> axes, ArrayRef<StringAttr> prefix) {
  return axes.size() >= prefix.size() && axes.take_front(prefix.size()) == prefix;
}

SmallVector<Axes> getDimAxes(ShardingAttr sharding) {
  SmallVector<Axes> dims;
  for (DimShardingAttr dim : sharding.getDims())
    dims.emplace_back(dim.getAxes());
  return dims;
}

void projectToFactors(const ShardingRule &rule, ArrayRef<DimFactors> dims, ArrayRef<Axes> dimAxes, MeshAttr mesh,
                      MutableArrayRef<Axes> factorAxes) {
  for (auto [factors, axes] : llvm::zip(dims, dimAxes)) {
    if (factors.size() == 1) {
      factorAxes[factors.front()] = axes;
      continue;
    }
    size_t next = 0;
    int64_t left = factors.empty() ? 1 : rule.factors[factors.front()].size;
    for (StringAttr axis : axes) {
      while (left == 1 && next + 1 < factors.size())
        left = rule.factors[factors[++next]].size;
      int64_t size = mesh.getSize(axis);
      if (factors.empty() || size == 0 || left % size)
        break;
      left /= size;
      factorAxes[factors[next]].push_back(axis);
    }
  }
}

Axes axesOfDim(const ShardingRule &rule, const DimFactors &dim, ArrayRef<Axes> factorAxes, MeshAttr mesh) {
  if (dim.size() == 1)
    return factorAxes[dim.front()];
  Axes axes;
  for (unsigned factor : dim) {
    int64_t left = rule.factors[factor].size;
    for (StringAttr axis : factorAxes[factor]) {
      if (left % mesh.getSize(axis))
        return axes;
      left /= mesh.getSize(axis);
      axes.push_back(axis);
    }
    if (left != 1)
      break;
  }
  return axes;
}

/// The bytes of a value on a rank, if this axis did not shard it.
static int64_t bytesWithout(Value value, ArrayRef<Axes> dims, StringAttr axis, MeshAttr mesh) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t elements = 1;
  for (auto [size, axes] : llvm::zip(type.getShape(), dims)) {
    int64_t shards = mesh.getSize(axes) / (llvm::is_contained(axes, axis) ? mesh.getSize(axis) : 1);
    elements *= llvm::divideCeil(size, shards);
  }
  return elements * getElementBytes(type.getElementType());
}

bool canPlaceRows(Operation *op, const ShardingRule &rule, ArrayRef<Axes> rows, ArrayRef<Axes> table, StringAttr axis,
                  MeshAttr mesh) {
  bool addressed = llvm::any_of(llvm::zip(rule.results[0], table), [&](auto each) {
    auto &[factors, axes] = each;
    return factors.size() == 1 && rule.factors[factors.front()].kind == FactorKind::Indexed &&
           llvm::is_contained(axes, axis);
  });
  return addressed &&
         bytesWithout(op->getOperand(0), rows, axis, mesh) < bytesWithout(op->getResult(0), table, axis, mesh);
}

} // namespace par
