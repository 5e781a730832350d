#include "par/Phases/Kernels/Fill.h"

using namespace mlir;

namespace par {

/// +0, whose bytes are zero.
static bool isZero(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValue().isPosZero();
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getValue().isZero();
}

bool addsAtEnd(Operation *op) {
  auto pad = dyn_cast<PadOp>(op);
  if (!pad || !isZero(pad.getValue()) || llvm::any_of(pad.getLow(), [](int64_t low) { return low != 0; }))
    return false;
  ArrayRef<int64_t> shape = pad.getOperand().getType().getShape();
  if (ShapedType::getNumElements(shape) == 0) // without bytes there is no buffer to grow in
    return false;
  // The only dim that grows is the outermost one of more than one element.
  const int64_t *grown = llvm::find_if(pad.getHigh(), [](int64_t high) { return high != 0; });
  int64_t dim = grown - pad.getHigh().begin(), rank = shape.size();
  return dim < rank &&
         llvm::all_of(
             pad.getHigh().drop_front(dim + 1), [](int64_t high) { return high == 0; }) &&
         llvm::all_of(shape.take_front(dim), [](int64_t size) { return size == 1; });
}

bool fillsUp(KernelOp kernel) {
  Block &body = kernel.getBlock();
  auto value = cast<ReturnOp>(body.getTerminator());
  return kernel.getTied() && llvm::equal(*kernel.getTied(), ArrayRef<int64_t>{0}) && body.getNumArguments() == 1 &&
         value->getNumOperands() == 1 && body.getOperations().size() == 2 && addsAtEnd(&body.front()) &&
         value->getOperand(0).getDefiningOp() == &body.front() && body.front().getOperand(0) == body.getArgument(0);
}

} // namespace par
