#include "AttentionPattern.h"

#include "par/Dialect/Attention.h"
#include "par/Dialect/Term.h"
#include "par/Phases/Train/Passes.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_FUSEATTENTIONPASS
#include "par/Phases/Train/Passes.h.inc"

namespace {
/// Gives new ops the stage of the matmul that they replace.
struct StageOfMatmul : OpBuilder::Listener {
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    if (stage)
      setStage(op, *stage);
  }
  std::optional<int64_t> stage;
};
} // namespace

/// The operand as [batch, heads, sequence, head dim], in the matmul's format.
static Value arrange(OpBuilder &builder, Location loc, const AttentionSide &side, Type element) {
  return Term(builder, loc, side.value).convert(element).transpose(side.order);
}

/// The mask with size 1 in broadcast dims, in the format of the scores.
static Value shrinkMask(OpBuilder &builder, Location loc, Value mask, Type inner) {
  if (!mask)
    return mask;
  if (auto repeat = mask.getDefiningOp<BroadcastInDimOp>()) {
    SmallVector<int64_t> shape(4, 1);
    for (auto [dim, size] : llvm::zip(repeat.getDims(), repeat.getOperand().getType().getShape()))
      shape[dim] = size;
    mask = buildReshape(builder, loc, repeat.getOperand(), shape);
  }
  return buildConvert(builder, loc, mask, inner);
}

static RankedTensorType arrangedType(const AttentionSide &side, Type element) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(side.value.getType()).getShape();
  return RankedTensorType::get(llvm::map_to_vector(side.order, [&](int64_t dim) { return shape[dim]; }), element);
}

static void fuse(DotOp values, AttentionMasks &masks, bool gpu) {
  Type element = values.getType().getElementType();
  if (!(gpu ? element.isBF16() || element.isF16() : element.isF32()))
    return;
  std::optional<AttentionPattern> pattern = readAttention(values, masks);
  if (!pattern)
    return;
  Heads heads(arrangedType(pattern->query, element), arrangedType(pattern->key, element),
              arrangedType(pattern->value, element));
  if (gpu && !heads.fitLibrary())
    return;
  StageOfMatmul listener;
  listener.stage = getStage(values);
  OpBuilder builder(values, &listener);
  Location loc = values.getLoc();
  auto attention = AttentionOp::create(
      builder, loc, heads.attendedType(), heads.lseType(), arrange(builder, loc, pattern->query, element),
      arrange(builder, loc, pattern->key, element), arrange(builder, loc, pattern->value, element),
      shrinkMask(builder, loc, pattern->mask, heads.inner), builder.getF64FloatAttr(pattern->scale),
      builder.getBoolAttr(pattern->causal));
  values.replaceAllUsesWith(attention.getResult());
}

namespace {
struct FuseAttentionPass : impl::FuseAttentionPassBase<FuseAttentionPass> {
  using FuseAttentionPassBase::FuseAttentionPassBase;

  void runOnOperation() override {
    for (StepOp step : getOperation().getOps<StepOp>()) {
      AttentionMasks masks;
      for (DotOp dot : llvm::make_early_inc_range(step.getBlock().getOps<DotOp>()))
        fuse(dot, masks, device == "cuda");
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.getBlock())))
        if (isTensorOp(&op) && isOpTriviallyDead(&op))
          op.erase();
    }
  }
};
} // namespace

} // namespace par
