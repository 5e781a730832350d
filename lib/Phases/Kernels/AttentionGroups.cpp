#include "AttentionCall.h"
#include "Groups.h"
#include "Values.h"

#include "par/Dialect/Attention.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace par {

/// Whether a result is heads; else it is lse.
static bool isHeads(Value result) { return cast<RankedTensorType>(result.getType()).getRank() == 4; }

/// All operands but lse and the mask.
static SmallVector<Value> headsReadBy(Operation *op) {
  if (auto grad = dyn_cast<AttentionGradOp>(op))
    return {grad.getCotangent(), grad.getQuery(), grad.getKey(), grad.getValue(), grad.getAttended()};
  return SmallVector<Value>(op->getOperands().take_front(3));
}

/// The group of the op with the layout ops of its operands.
static std::unique_ptr<Group> readHeads(Operation *op, IsTaken isTaken) {
  auto group = std::make_unique<Group>();
  for (Value operand : headsReadBy(op))
    for (Operation *move : findReadMoves(operand, isTaken))
      group->clones.insert(move);
  group->ops.push_back(op);
  group->anchor = op;
  return group;
}

/// Writes all results as parts of the value to which they are concatenated.
static std::unique_ptr<Group> formJoined(AttentionGradOp op, IsTaken isTaken, llvm::function_ref<bool(Value)> isRead) {
  SmallVector<Operation *> moves = op ? findJoin(op->getResults(), isRead) : SmallVector<Operation *>();
  if (moves.empty())
    return nullptr;
  std::unique_ptr<Group> group = readHeads(op, isTaken);
  group->ops.append(moves);
  group->results.push_back(moves.back()->getResult(0));
  return finishBuiltin(std::move(group), /*gpu=*/true, isTaken);
}

std::unique_ptr<Group> formAttention(Operation *op, IsTaken isTaken, llvm::function_ref<bool(Value)> isRead) {
  if (!isAttention(op))
    return nullptr;
  if (auto group = formJoined(dyn_cast<AttentionGradOp>(op), isTaken, isRead))
    return group;
  std::unique_ptr<Group> group = readHeads(op, isTaken);
  for (Value result : op->getResults()) {
    SmallVector<Operation *> moves = isHeads(result) ? findWriteMoves(result, isRead) : SmallVector<Operation *>();
    group->ops.append(moves);
    group->results.push_back(moves.empty() ? result : moves.back()->getResult(0));
  }
  return finishBuiltin(std::move(group), /*gpu=*/true, isTaken);
}

/// Makes attentions read `value` through its transpose, so that only the transposed value is written.
static void arrange(Value value) {
  TransposeOp transpose = findOneTranspose(value);
  if (!transpose || value.hasOneUse())
    return;
  transpose->moveAfter(value.getDefiningOp());
  OpBuilder builder(transpose->getContext());
  builder.setInsertionPointAfter(transpose);
  SmallVector<int64_t> inverse = invertPermutationVector(transpose.getPermutation());
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
