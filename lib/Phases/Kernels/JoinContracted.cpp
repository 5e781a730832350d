#include "JoinContracted.h"

#include "Groups.h"
#include "par/Dialect/Term.h"

using namespace mlir;

namespace par {

/// The pairs of contracting dims as they lie in an operand.
static SmallVector<int64_t> orderOf(ArrayRef<int64_t> contracting) {
  SmallVector<int64_t> order = dimRange(0, contracting.size());
  llvm::sort(order, [&](int64_t a, int64_t b) { return contracting[a] < contracting[b]; });
  return order;
}

/// The operand as [batching, contracting, free], unless its contracting dims are adjacent and in that order already.
/// Updates the lists of dims.
static Value joinContracting(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> order,
                             SmallVector<int64_t> &contracting, SmallVector<int64_t> &batching,
                             ArrayRef<int64_t> free) {
  SmallVector<int64_t> ordered = llvm::map_to_vector(order, [&](int64_t pair) { return contracting[pair]; });
  contracting = ordered;
  if (llvm::equal(ordered, dimRange(ordered[0], ordered[0] + ordered.size())))
    return value;
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::concat<const int64_t>(batching, ordered, free));
  batching = dimRange(0, batching.size());
  contracting = dimRange(batching.size(), batching.size() + ordered.size());
  return Term(builder, loc, value).transpose(permutation);
}

/// The same product of operands that are moved as the one of them is (`byRight`: the right one).
static DotOp buildJoined(DotOp dot, bool byRight) {
  OpBuilder builder(dot);
  SmallVector<int64_t> left = llvm::to_vector(dot.getLhsContracting()),
                       right = llvm::to_vector(dot.getRhsContracting()),
                       leftBatch = llvm::to_vector(dot.getLhsBatching()),
                       rightBatch = llvm::to_vector(dot.getRhsBatching());
  SmallVector<int64_t> order = orderOf(byRight ? right : left);
  Value lhs = joinContracting(builder, dot.getLoc(), dot.getLhs(), order, left, leftBatch, dot.getLhsFree());
  Value rhs = joinContracting(builder, dot.getLoc(), dot.getRhs(), order, right, rightBatch, dot.getRhsFree());
  return buildDot(builder, dot.getLoc(), lhs, rhs, left, right, leftBatch, rightBatch, dot.getType().getElementType())
      .getDefiningOp<DotOp>();
}

/// Whether each moved element takes part in enough multiplications: the cost of the copy is then small.
static bool paysToMove(DotOp dot, DotOp joined) {
  constexpr int64_t fewest = 64;
  auto isMoved = [](Value before, Value after) { return before != after; };
  auto sizeOf = [](Value value, ArrayRef<int64_t> dims) {
    int64_t size = 1;
    for (int64_t dim : dims)
      size *= getTensorType(value.getType()).getDimSize(dim);
    return size;
  };
  return (!isMoved(dot.getLhs(), joined.getLhs()) || sizeOf(dot.getRhs(), dot.getRhsFree()) >= fewest) &&
         (!isMoved(dot.getRhs(), joined.getRhs()) || sizeOf(dot.getLhs(), dot.getLhsFree()) >= fewest);
}

void joinContracted(BlockOp block, bool narrow) {
  auto isTaken = [](Operation *) { return false; };
  for (DotOp dot : llvm::make_early_inc_range(block.getOps<DotOp>())) {
    if (dot.getLhsContracting().size() < 2 || dot->use_empty() || formMatmul(dot, narrow, isTaken))
      continue;
    for (bool byRight : {false, true}) {
      DotOp joined = buildJoined(dot, byRight);
      Value product = joined.getResult();
      dot.getResult().replaceAllUsesWith(product);
      if (paysToMove(dot, joined) && formMatmul(joined, narrow, isTaken)) {
        dot.erase();
        break;
      }
      product.replaceAllUsesWith(dot.getResult());
      SmallVector<Value> moved{joined.getLhs(), joined.getRhs()};
      joined.erase();
      for (auto [value, before] : llvm::zip(moved, dot.getOperands()))
        if (value != before)
          value.getDefiningOp()->erase();
    }
  }
}

} // namespace par
