#include "AttentionCall.h"
#include "Groups.h"

#include "par/Dialect/Attention.h"

using namespace mlir;

namespace par {

static bool isAttention(Operation *op) { return isa<AttentionOp, AttentionGradOp>(op); }

/// Heads, in the format of 16 bits.
static bool isHeads(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getRank() == 4 && type.getElementTypeBitWidth() == 16;
}

std::unique_ptr<Group> formAttention(Operation *op, IsTaken isTaken, llvm::function_ref<bool(Value)> isRead) {
  if (!isAttention(op))
    return nullptr;
  auto group = std::make_unique<Group>();
  for (Value operand : op->getOperands())
    if (isHeads(operand))
      for (Operation *move : findReadMoves(operand, isTaken))
        group->clones.insert(move);
  group->ops.push_back(op);
  group->anchor = op;
  for (Value result : op->getResults()) {
    SmallVector<Operation *> moves = isHeads(result) ? findWriteMoves(result, isRead) : SmallVector<Operation *>();
    group->ops.append(moves);
    group->results.push_back(moves.empty() ? result : moves.back()->getResult(0));
  }
  group->close(isTaken);
  OpBuilder builder(op->getContext());
  OwningOpRef<KernelOp> kernel(buildKernel(builder, *group));
  std::optional<BuiltinCall> call = describeBuiltin(*kernel);
  if (!call)
    return nullptr;
  group->implementation = "builtin:" + std::string(call->kernel->name);
  return group;
}

/// The one transpose by which all read `value` but attentions; null if there is none.
static TransposeOp findTranspose(Value value) {
  TransposeOp found;
  for (Operation *user : value.getUsers()) {
    if (isAttention(user))
      continue;
    auto transpose = dyn_cast<TransposeOp>(user);
    if (!transpose || found)
      return {};
    found = transpose;
  }
  return found;
}

/// Lets attentions read `value` from what a transpose makes of it, so that it is written so alone.
static void arrange(Value value) {
  TransposeOp transpose = findTranspose(value);
  if (!transpose || value.hasOneUse())
    return;
  transpose->moveAfter(value.getDefiningOp());
  OpBuilder builder(transpose->getContext());
  builder.setInsertionPointAfter(transpose);
  SmallVector<int64_t> inverse(transpose.getPermutation().size());
  for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
    inverse[source] = int64_t(dim);
  Value back = TransposeOp::create(builder, transpose.getLoc(), transpose.getResult(), inverse);
  value.replaceUsesWithIf(back, [](OpOperand &use) { return isAttention(use.getOwner()); });
}

void arrangeAttention(BlockOp block) {
  SmallVector<Value> results;
  for (Operation &op : block.getBody().front())
    if (isAttention(&op))
      llvm::copy_if(op.getResults(), std::back_inserter(results), isHeads);
  llvm::for_each(results, arrange);
}

} // namespace par
