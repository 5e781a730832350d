// Reads a select that replaces rows of a buffer as one call of the builtin "place_rows", for groups and for kernels.
//
// Exporters write rows into a cache element by element: `number` is, for each slot, that of the new row that goes
// there,
//     select(0 <= number and number < rows, take(new, clamp(number)), kept)
// and the call touches only the slots for which the condition holds. Conditions and clamps are read as functions of the
// number: for each number of a row the clamp must give that number.
#include "RowWrites.h"

#include "CallBuilder.h"
#include "Values.h"
#include "par/Dialect/Splat.h"

using namespace mlir;

namespace par {
namespace {

struct RowWrite {
  static std::optional<RowWrite> read(SelectOp op);

  Value kept, rows;                 ///< [batch, heads, slots, width] and [batch, heads, rows, width]
  Value number;                     ///< [batch, slots]: the row that goes to a slot; of none, it stays
  llvm::SetVector<Operation *> ops; ///< the select, and all between it and those

private:
  Value readRepeated(Value value);
  bool readCondition(Value inside, int64_t count);
  std::optional<int64_t> valueAt(Value value, int64_t at);
};

} // namespace

/// The value for each slot of each batch that is repeated for heads and elements.
Value RowWrite::readRepeated(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastInDimOp>();
  auto reshape = broadcast ? broadcast.getOperand().getDefiningOp<ReshapeOp>() : ReshapeOp();
  ArrayRef<int64_t> shape = shapeOf(kept);
  const int64_t between[] = {shape[0], 1, shape[2], 1}, source[] = {shape[0], shape[2]};
  if (!reshape || broadcast.getDims() != ArrayRef<int64_t>{0, 1, 2, 3} ||
      shapeOf(broadcast.getOperand()) != ArrayRef(between) || shapeOf(reshape.getOperand()) != ArrayRef(source))
    return {};
  ops.insert(broadcast);
  ops.insert(reshape);
  return reshape.getOperand();
}

/// 0 <= number < count
bool RowWrite::readCondition(Value inside, int64_t count) {
  auto both = inside.getDefiningOp<AndOp>();
  if (!both)
    return false;
  bool low = false, high = false;
  for (Value side : {both.getLhs(), both.getRhs()}) {
    auto compare = side.getDefiningOp<CompareOp>();
    std::optional<double> bound = compare ? readSplat(compare.getRhs()) : std::nullopt;
    if (!bound || (number && compare.getLhs() != number))
      return false;
    number = compare.getLhs();
    low |= compare.getPredicate() == Predicate::ge && *bound == 0;
    high |= compare.getPredicate() == Predicate::lt && *bound == double(count);
    ops.insert(compare);
    if (!valueAt(compare.getRhs(), 0)) // a constant
      return false;
  }
  ops.insert(both);
  return low && high;
}

static bool holds(Predicate predicate, int64_t lhs, int64_t rhs) {
  switch (predicate) {
  case Predicate::eq:
    return lhs == rhs;
  case Predicate::ne:
    return lhs != rhs;
  case Predicate::lt:
    return lhs < rhs;
  case Predicate::le:
    return lhs <= rhs;
  case Predicate::gt:
    return lhs > rhs;
  case Predicate::ge:
    return lhs >= rhs;
  }
  llvm_unreachable("no other predicate");
}

/// An integer that is computed from constants and the number, where the number is `at`.
std::optional<int64_t> RowWrite::valueAt(Value value, int64_t at) {
  if (value == number)
    return at;
  Operation *op = value.getDefiningOp();
  if (!op || !isKernelOp(op))
    return std::nullopt;
  ops.insert(op);
  if (op->hasTrait<OpTrait::ConstantLike>()) {
    std::optional<double> splat = readSplat(value);
    return splat ? std::optional(int64_t(*splat)) : std::nullopt;
  }
  if (isa<BroadcastInDimOp, ReshapeOp>(op))
    return readSplat(value) ? valueAt(op->getOperand(0), at) : std::nullopt;
  if (!isa<CompareOp, SelectOp>(op))
    return std::nullopt;
  SmallVector<int64_t> operands;
  for (Value operand : op->getOperands()) {
    std::optional<int64_t> known = valueAt(operand, at);
    if (!known)
      return std::nullopt;
    operands.push_back(*known);
  }
  if (auto compare = dyn_cast<CompareOp>(op))
    return holds(compare.getPredicate(), operands[0], operands[1]);
  return operands[0] ? operands[1] : operands[2];
}

std::optional<RowWrite> RowWrite::read(SelectOp op) {
  RowWrite found;
  auto take = op.getOnTrue().getDefiningOp<TakeOp>();
  found.kept = op.getOnFalse();
  if (!take || take.getDim() != 2 || op.getType().getRank() != 4 || !op.getType().getElementType().isF32())
    return std::nullopt;
  found.rows = take.getOperand();
  int64_t count = shapeOf(found.rows)[2];
  Value inside = found.readRepeated(op.getCondition()), index = found.readRepeated(take.getIndices());
  if (!inside || !index || !found.readCondition(inside, count) ||
      !getTensorType(found.number.getType()).getElementType().isInteger(64))
    return std::nullopt;
  for (int64_t row = 0; row < count; ++row)
    if (found.valueAt(index, row) != row)
      return std::nullopt;
  found.ops.insert(take);
  found.ops.insert(op);
  return found;
}

std::unique_ptr<Group> formRowWrite(Operation *op, IsTaken isTaken) {
  auto select = dyn_cast<SelectOp>(op);
  std::optional<RowWrite> found = select ? RowWrite::read(select) : std::optional<RowWrite>();
  if (!found || !isEarlyLoad(found->kept.getDefiningOp()))
    return nullptr;
  auto group = std::make_unique<Group>();
  group->anchor = op;
  group->ops.push_back(op);
  for (Operation *each : found->ops)
    if (each != op)
      group->clones.insert(each);
  group->results.push_back(select.getResult());
  group->tied = {{select.getResult(), found->kept}};
  return finishBuiltin(std::move(group), /*gpu=*/false, isTaken);
}

std::optional<BuiltinCall> describeRowWrite(KernelOp kernel) {
  auto select = dyn_cast_or_null<SelectOp>(kernel.getTerminator()->getPrevNode());
  std::optional<RowWrite> found = select ? RowWrite::read(select) : std::optional<RowWrite>();
  if (!found)
    return std::nullopt;
  CallBuilder call(kernel, "place_rows");
  call.update(found->kept, select.getResult()).read(found->rows).read(found->number);
  for (size_t more = 1; more < found->ops.size(); ++more) // one op of the body and the return are counted already
    call.besides();
  return call.integers(shapeOf(found->kept)).integers({shapeOf(found->rows)[2]}).finish();
}

} // namespace par
