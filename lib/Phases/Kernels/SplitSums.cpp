#include "Groups.h"

using namespace mlir;

namespace par {

/// Blocks that keep a large GPU busy, and elements that are worth one of them.
static constexpr int64_t manyBlocks = 512, elementsOfBlock = 2048;
/// Neighbouring columns that a block adds up.
static constexpr int64_t columnsOfBlock = 32;
/// Parts of a whole tensor: minimum number if dims are kept for them, and maximum number that one block adds up.
static constexpr int64_t minParts = 64, maxParts = 4096;

/// A divisor of `size` of at most `limit`, as large as there is one.
static int64_t divisorUpTo(int64_t limit, int64_t size) {
  for (; limit > 1 && size % limit != 0; --limit)
    ;
  return std::max<int64_t>(limit, 1);
}

/// Makes the reduction one of parts that `first` keeps in leading dims of its operand.
static void reduceParts(ReduceOp reduce, Value operand, ArrayRef<int64_t> first, int64_t partDims) {
  OpBuilder builder(reduce);
  Value parts = ReduceOp::create(builder, reduce.getLoc(), reduce.getKind(), operand, first);
  reduce.getOperandMutable().assign(parts);
  reduce.setDims(llvm::to_vector(llvm::seq<int64_t>(0, partDims)));
}

/// Sums over leading dims: neighbouring threads have neighbouring columns, of which there may be few.
static void splitColumns(ReduceOp reduce, ArrayRef<int64_t> shape) {
  size_t count = reduce.getDims().size();
  int64_t reduced = ShapedType::getNumElements(shape.take_front(count)),
          kept = ShapedType::getNumElements(shape.drop_front(count));
  int64_t blocks = llvm::divideCeil(kept, columnsOfBlock);
  int64_t parts = divisorUpTo(std::min(manyBlocks / blocks, reduced * kept / blocks / elementsOfBlock), reduced);
  if (parts <= 1)
    return;
  SmallVector<int64_t> apart{parts, reduced / parts};
  llvm::append_range(apart, shape.drop_front(count));
  OpBuilder builder(reduce);
  Value operand = buildReshape(builder, reduce.getLoc(), reduce.getOperand(), apart);
  reduceParts(reduce, operand, {1}, 1);
}

/// Sums of whole tensors. If leading dims make enough parts, the op that computes the tensor has them as rows, too.
static void splitWhole(ReduceOp reduce, ArrayRef<int64_t> shape) {
  int64_t all = ShapedType::getNumElements(shape);
  if (all < 2 * elementsOfBlock)
    return;
  int64_t dims = 0, parts = 1;
  while (dims + 1 < int64_t(shape.size()) && parts * shape[dims] <= maxParts)
    parts *= shape[dims++];
  if (parts >= minParts)
    return reduceParts(reduce, reduce.getOperand(), llvm::to_vector(llvm::seq<int64_t>(dims, shape.size())), dims);
  parts = divisorUpTo(std::min(manyBlocks, all / elementsOfBlock), all);
  if (parts <= 1)
    return;
  OpBuilder builder(reduce);
  Value operand = buildReshape(builder, reduce.getLoc(), reduce.getOperand(), {parts, all / parts});
  reduceParts(reduce, operand, {1}, 1);
}

void splitSums(BlockOp block, IsTaken isTaken) {
  for (auto reduce : llvm::make_early_inc_range(block.getOps<ReduceOp>())) {
    ArrayRef<int64_t> shape = getTensorType(reduce.getOperand().getType()).getShape();
    SmallVector<int64_t> dims = llvm::to_vector(reduce.getDims());
    llvm::sort(dims);
    if (isTaken(reduce) || dims.empty() || ShapedType::getNumElements(shape) == 0)
      continue;
    bool leading = dims.back() + 1 == int64_t(dims.size());
    if (dims.size() == shape.size())
      splitWhole(reduce, shape);
    else if (leading)
      splitColumns(reduce, shape);
  }
}

} // namespace par
