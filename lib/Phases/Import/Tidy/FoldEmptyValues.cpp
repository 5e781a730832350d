// Replaces tensors without elements by constants.
//
// Graphs make such tensors if a region that they write, a window that they roll or a list that they join happens to be
// empty. Left in the step, they would be sharded, sliced in time and communicated like others, though they hold nothing
// and have no use.
#include "par/Dialect/Interfaces/Interpretable.h"
#include "par/Dialect/Term.h"
#include "par/Phases/Import/Passes.h"

#include "mlir/IR/Matchers.h"

namespace par {

#define GEN_PASS_DEF_FOLDEMPTYVALUESPASS
#include "par/Phases/Import/Passes.h.inc"

using namespace mlir;

namespace {

bool isEmpty(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getNumElements() == 0;
}

/// The value of all elements; null if they differ.
TypedAttr splatOf(const interp::Tensor &tensor) {
  Type element = tensor.getType().getElementType();
  auto isFirst = [](auto values) { return llvm::all_of(values, [&](auto x) { return x == values.front(); }); };
  if (auto real = dyn_cast<FloatType>(element))
    return isFirst(tensor.floats()) ? FloatAttr::get(real, tensor.floats().front()) : FloatAttr();
  bool isSigned = !element.isInteger(1);
  APInt first(element.getIntOrFloatBitWidth(), tensor.ints().front(), isSigned, /*implicitTrunc=*/true);
  return isFirst(tensor.ints()) ? IntegerAttr::get(element, first) : IntegerAttr();
}

/// Folds an op with constant operands, one of which is empty: zeros for a sum over nothing, the initial value for a
/// pad. Null if the result is not a splat.
Value foldConstants(Operation *op, OpBuilder &builder) {
  auto meaning = dyn_cast<InterpretableOpInterface>(op);
  if (!meaning || op->getNumResults() != 1)
    return {};
  SmallVector<interp::Tensor> operands;
  for (Value operand : op->getOperands()) {
    ElementsAttr value;
    if (!matchPattern(operand, m_Constant(&value)))
      return {};
    operands.push_back(interp::Tensor::ofAttribute(value));
  }
  FailureOr<SmallVector<interp::Tensor>> results = meaning.interpret(operands);
  TypedAttr splat = succeeded(results) ? splatOf(results->front()) : TypedAttr();
  if (!splat)
    return {};
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return ConstantOp::create(builder, op->getLoc(), DenseElementsAttr::get(type, Attribute(splat)));
}

/// The value that the result of `op`, which has elements, is equal to; null where none is known.
Value withoutEmpty(Operation *op, OpBuilder &builder) {
  if (auto concat = dyn_cast<ConcatOp>(op)) {
    SmallVector<Value> parts(llvm::make_filter_range(concat.getInputs(), [](Value part) { return !isEmpty(part); }));
    return parts.size() == 1 ? parts[0]
                             : ConcatOp::create(builder, op->getLoc(), parts, concat.getDimAttr()).getResult();
  }
  if (auto update = dyn_cast<UpdateSliceOp>(op))
    return update.getOperand();
  return foldConstants(op, builder);
}

struct FoldEmptyValuesPass : impl::FoldEmptyValuesPassBase<FoldEmptyValuesPass> {
  void runOnOperation() override {
    for (StepOp step : getOperation().getOps<StepOp>())
      fold(step.getBlock());
  }

  void fold(Block &block) {
    for (BlockArgument argument : block.getArguments())
      if (isEmpty(argument)) {
        OpBuilder builder = OpBuilder::atBlockBegin(&block);
        argument.replaceAllUsesWith(emptyConstant(builder, argument));
      }
    for (Operation &op : llvm::make_early_inc_range(block))
      if (isPure(&op) && !isa<ConstantOp>(op) && !op.hasTrait<OpTrait::IsTerminator>())
        fold(&op);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isPure(&op) && op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
  }

  /// An op with an empty and a non-empty result stays: users of the empty one are folded.
  void fold(Operation *op) {
    OpBuilder builder(op);
    bool hadEmpty = llvm::any_of(op->getOperands(), isEmpty);
    for (Value result : op->getResults())
      if (isEmpty(result))
        result.replaceAllUsesWith(emptyConstant(builder, result));
    if (hadEmpty && op->getNumResults() == 1 && !isEmpty(op->getResult(0)))
      if (Value value = withoutEmpty(op, builder))
        op->getResult(0).replaceAllUsesWith(value);
  }

  static Value emptyConstant(OpBuilder &builder, Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return ConstantOp::create(builder, value.getLoc(), DenseElementsAttr::get(type, ArrayRef<Attribute>()));
  }
};

} // namespace
} // namespace par
