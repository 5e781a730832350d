#include "par/Phases/Import/Passes.h"

namespace par {

#define GEN_PASS_DEF_SPLITMERGEDDIMSPASS
#include "par/Phases/Import/Passes.h.inc"

using namespace mlir;

namespace {

using Sizes = SmallVector<int64_t>;

/// The sizes into which each dim of `from` splits to give `to`; nothing if a dim of `to` merges parts of two. Dims of
/// size 1 belong to the dim before them.
std::optional<SmallVector<Sizes>> findSplits(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<Sizes> splits;
  size_t next = 0;
  for (int64_t size : from) {
    Sizes &parts = splits.emplace_back();
    for (int64_t left = size; left > 1 || (parts.empty() && next < to.size()); left /= to[next++]) {
      if (next == to.size() || to[next] == 0 || left % to[next])
        return std::nullopt;
      parts.push_back(to[next]);
    }
  }
  for (; next < to.size(); ++next) { // trailing dims of size 1
    if (to[next] != 1 || splits.empty())
      return std::nullopt;
    splits.back().push_back(1);
  }
  return splits;
}

/// The sizes of [1, 64, 16, 256] that are more than 1.
Sizes withoutOnes(ArrayRef<int64_t> shape) {
  Sizes sizes(shape);
  llvm::erase(sizes, 1);
  return sizes;
}

/// Rewrites reshape(transpose(reshape(x))) as transpose(reshape(x)), if that reshape merges no dims.
void splitMerged(ReshapeOp last) {
  auto transpose = last.getOperand().getDefiningOp<TransposeOp>();
  auto first = transpose ? transpose.getOperand().getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!first)
    return;
  while (auto before = first.getOperand().getDefiningOp<ReshapeOp>()) // row-major order is the same
    first = before;
  auto splits = findSplits(transpose.getType().getShape(), last.getType().getShape());
  if (!splits)
    return;
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  SmallVector<Sizes> bySource(splits->size());
  for (auto [to, from] : llvm::enumerate(permutation))
    bySource[from] = (*splits)[to];
  Sizes shape, begins;
  for (const Sizes &parts : bySource) {
    begins.push_back(shape.size());
    llvm::append_range(shape, parts);
  }
  if (!findSplits(withoutOnes(first.getOperand().getType().getShape()), withoutOnes(shape)))
    return;
  SmallVector<int64_t> order;
  for (int64_t from : permutation)
    llvm::append_range(order, llvm::seq<int64_t>(begins[from], begins[from] + bySource[from].size()));
  OpBuilder builder(last);
  Value apart = buildReshape(builder, first.getLoc(), first.getOperand(), shape);
  last.replaceAllUsesWith(TransposeOp::create(builder, transpose.getLoc(), apart, order).getResult());
  last.erase();
}

struct SplitMergedDimsPass : impl::SplitMergedDimsPassBase<SplitMergedDimsPass> {
  void runOnOperation() override {
    SmallVector<ReshapeOp> reshapes;
    getOperation().walk([&](ReshapeOp reshape) { reshapes.push_back(reshape); });
    for (ReshapeOp reshape : reshapes)
      splitMerged(reshape);
    for (StepOp step : getOperation().getOps<StepOp>())
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.getBlock())))
        if (isa<ReshapeOp, TransposeOp>(op) && op.use_empty())
          op.erase();
  }
};

} // namespace
} // namespace par
