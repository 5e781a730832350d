#include "par/Dialect/Par.h"
#include "par/Phases/Kernels/Passes.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_PADSTOCONCATPASS
#include "par/Phases/Kernels/Passes.h.inc"

/// The pads by zeros that a sum adds up, none of which anybody else reads; false if it adds up anything else.
static bool collectPads(Value value, SmallVectorImpl<PadOp> &pads) {
  if (auto add = value.getDefiningOp<AddOp>())
    return value.hasOneUse() && collectPads(add.getLhs(), pads) && collectPads(add.getRhs(), pads);
  auto pad = value.getDefiningOp<PadOp>();
  auto zero = pad ? dyn_cast<FloatAttr>(pad.getValue()) : FloatAttr();
  if (!zero || !zero.getValue().isZero() || !value.hasOneUse())
    return false;
  pads.push_back(pad);
  return true;
}

static SmallVector<int64_t> paddedDims(PadOp pad) {
  SmallVector<int64_t> dims;
  for (auto [dim, low, high] : llvm::enumerate(pad.getLow(), pad.getHigh()))
    if (low != 0 || high != 0)
      dims.push_back(int64_t(dim));
  return dims;
}

/// The one dim along which the sorted pads follow each other without gaps; -1 if there is none.
static int64_t findDim(SmallVectorImpl<PadOp> &pads) {
  SmallVector<int64_t> dims = paddedDims(pads.front());
  if (dims.size() != 1 || llvm::any_of(pads, [&](PadOp pad) { return paddedDims(pad) != dims; }))
    return -1;
  int64_t dim = dims.front(), end = 0;
  llvm::sort(pads, [&](PadOp a, PadOp b) { return a.getLow()[dim] < b.getLow()[dim]; });
  for (PadOp pad : pads) {
    if (pad.getLow()[dim] != end)
      return -1;
    end += getTensorType(pad.getOperand().getType()).getDimSize(dim);
  }
  return pads.back().getHigh()[dim] == 0 ? dim : -1;
}

static void join(AddOp sum) {
  SmallVector<PadOp> pads;
  if (!collectPads(sum.getLhs(), pads) || !collectPads(sum.getRhs(), pads))
    return;
  int64_t dim = findDim(pads);
  if (dim < 0)
    return;
  OpBuilder builder(sum);
  SmallVector<Value> parts = llvm::map_to_vector(pads, [](PadOp pad) -> Value { return pad.getOperand(); });
  Value joined = ConcatOp::create(builder, sum.getLoc(), parts, dim);
  sum.replaceAllUsesWith(joined);
}

namespace {
struct PadsToConcatPass : impl::PadsToConcatPassBase<PadsToConcatPass> {
  void runOnOperation() override {
    getOperation().walk([](BlockOp block) {
      // Sums of sums are met first.
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block.getBody().front()))) {
        if (auto sum = dyn_cast<AddOp>(op))
          join(sum);
        if (isOpTriviallyDead(&op))
          op.erase();
      }
    });
  }
};
} // namespace

} // namespace par
