#include "par/Dialect/Par.h"

using namespace mlir;

namespace par {

/// Size of the group that the axes span on the mesh of the enclosing fragment or program; 1 if there is no mesh.
static FailureOr<int64_t> groupSize(Operation *op, ArrayAttr axes) {
  FlatSymbolRefAttr stage;
  if (auto fragment = op->getParentOfType<FragmentOp>())
    stage = fragment.getStageAttr();
  else if (auto program = op->getParentOfType<ProgramOp>())
    stage = program.getFirstStage();
  MeshAttr mesh = stage ? getMesh(op, stage) : MeshAttr();
  if (!mesh)
    return op->emitOpError() << "is in no fragment or program of a known stage";
  int64_t size = 1;
  for (StringAttr axis : getAxes(axes)) {
    if (!mesh.getSize(axis))
      return op->emitOpError() << "axis " << axis << " is not in the mesh " << mesh << " of stage " << stage;
    size *= mesh.getSize(axis);
  }
  return size;
}

/// Results pair up with operands; result dim `grow` is the operand's times the group, dim `shrink` divided by
/// it.
static LogicalResult verifyShapes(Operation *op, ArrayAttr axes, ArrayRef<int64_t> grow, ArrayRef<int64_t> shrink,
                                  StringRef label) {
  FailureOr<int64_t> group = groupSize(op, axes);
  if (failed(group))
    return failure();
  unsigned many = op->getNumOperands();
  if (op->getNumResults() != many || (!grow.empty() && grow.size() != many) ||
      (!shrink.empty() && shrink.size() != many))
    return op->emitOpError() << "has " << many << " operands and " << op->getNumResults() << " results";
  for (unsigned i = 0; i < many; ++i) {
    auto from = cast<RankedTensorType>(op->getOperand(i).getType()),
         to = cast<RankedTensorType>(op->getResult(i).getType());
    SmallVector<int64_t> expected(from.getShape());
    auto within = [&](int64_t dim) { return dim >= 0 && dim < from.getRank(); };
    if ((!grow.empty() && !within(grow[i])) || (!shrink.empty() && !within(shrink[i])))
      return op->emitOpError() << "(" << label << ") names a dim that " << from << " lacks";
    if (!grow.empty())
      expected[grow[i]] *= *group;
    if (!shrink.empty()) {
      if (expected[shrink[i]] % *group)
        return op->emitOpError() << "(" << label << ") dim " << shrink[i] << " of " << from
                                 << " does not divide by the group of " << *group;
      expected[shrink[i]] /= *group;
    }
    if (to != from.clone(expected))
      return op->emitOpError() << "(" << label << ") result " << i << " is " << to << ", expected "
                               << from.clone(expected) << " on a group of " << *group;
  }
  return success();
}

LogicalResult AllReduceOp::verify() { return verifyShapes(*this, getAxes(), {}, {}, "all_reduce_c1"); }
LogicalResult AllGatherOp::verify() { return verifyShapes(*this, getAxes(), getDims(), {}, "all_gather_c1"); }
LogicalResult ReduceScatterOp::verify() { return verifyShapes(*this, getAxes(), {}, getDims(), "reduce_scatter_c1"); }
LogicalResult AllToAllOp::verify() {
  return verifyShapes(*this, getAxes(), getConcatDims(), getSplitDims(), "all_to_all_c1");
}

} // namespace par
