// Outputs that are inputs of the next call: variables of the step, which stay on the devices.
#include "par/Phases/Import/Passes.h"

#include "llvm/ADT/BitVector.h"

namespace par {

#define GEN_PASS_DEF_CARRYSTATEPASS
#include "par/Phases/Import/Passes.h.inc"

using namespace mlir;

namespace {

std::optional<unsigned> indexOf(std::optional<ArrayAttr> names, StringRef name) {
  if (names)
    for (auto [index, known] : llvm::enumerate(names->getAsRange<StringAttr>()))
      if (known.getValue() == name)
        return index;
  return std::nullopt;
}

/// The names that are left.
ArrayAttr without(ArrayAttr names, const llvm::BitVector &gone) {
  SmallVector<Attribute> left;
  for (auto [index, name] : llvm::enumerate(names))
    if (!gone[index])
      left.push_back(name);
  return ArrayAttr::get(names.getContext(), left);
}

/// One step whose pairs become variables.
class StateCarry {
public:
  explicit StateCarry(StepOp step)
      : step(step), arguments(step.getBlock().getNumArguments()), results(step.getTerminator()->getNumOperands()) {}

  LogicalResult carry(StringRef output, StringRef input);
  void finish();

private:
  StepOp step;
  llvm::BitVector arguments, results; ///< carried ones of both
};

} // namespace

LogicalResult StateCarry::carry(StringRef output, StringRef input) {
  std::optional<unsigned> from = indexOf(step.getOutputs(), output), to = indexOf(step.getInputs(), input);
  if (!from || !to)
    return step.emitError() << "carries \"" << output << "\" to \"" << input << "\", and has no "
                            << (from ? "input" : "output") << " \"" << (from ? input : output) << "\"";
  Value value = step.getTerminator()->getOperand(*from);
  BlockArgument argument = step.getBlock().getArgument(*to);
  if (value.getType() != argument.getType())
    return step.emitError() << "carries \"" << output << "\", " << value.getType() << ", to \"" << input << "\", "
                            << argument.getType();
  if (isa<BlockArgument>(value) || value.getDefiningOp<ReadOp>())
    return step.emitError() << "carries \"" << output << "\", which is an input or a parameter as it came in";
  auto type = cast<RankedTensorType>(argument.getType());
  std::optional<ArrayRef<int64_t>> dims = step.getBatchDims();
  int64_t batch = type.getRank() == 0 ? -1 : dims ? (*dims)[*to] : 0;
  OpBuilder outside(step), inside(step);
  VariableOp::create(outside, value.getLoc(), input, VariableKind::carried, FlatSymbolRefAttr(), type, TypeAttr(),
                     ShardingAttr(), ArrayAttr(), ElementsAttr(), StringAttr(), DictionaryAttr());
  inside.setInsertionPointToStart(&step.getBlock());
  argument.replaceAllUsesWith(ReadOp::create(inside, argument.getLoc(), type, input, /*behind=*/0, batch));
  inside.setInsertionPoint(step.getTerminator());
  WriteOp::create(inside, value.getLoc(), value, input);
  arguments.set(*to);
  results.set(*from);
  return success();
}

/// Removes carried arguments and results from the step.
void StateCarry::finish() {
  Block &block = step.getBlock();
  if (std::optional<ArrayRef<int64_t>> dims = step.getBatchDims()) {
    SmallVector<int64_t> left;
    for (auto [index, dim] : llvm::enumerate(*dims))
      if (!arguments[index])
        left.push_back(dim);
    step.setBatchDims(left);
  }
  step.setInputsAttr(without(*step.getInputs(), arguments));
  step.setOutputsAttr(without(*step.getOutputs(), results));
  block.eraseArguments(arguments);
  step.getTerminator()->eraseOperands(results);
  step.setFunctionType(
      FunctionType::get(step.getContext(), block.getArgumentTypes(), step.getTerminator()->getOperandTypes()));
}

namespace {
struct CarryStatePass : impl::CarryStatePassBase<CarryStatePass> {
  using Base::Base;

  void runOnOperation() override {
    if (pairs.empty())
      return;
    auto step = getOperation().lookupSymbol<StepOp>("predict");
    if (!step) {
      getOperation().emitError() << "has no @predict, the only step that carries outputs on to the next call";
      return signalPassFailure();
    }
    StateCarry carrier(step);
    for (StringRef pair : pairs) {
      auto [output, input] = pair.split('=');
      if (failed(carrier.carry(output, input)))
        return signalPassFailure();
    }
    carrier.finish();
  }
};
} // namespace

} // namespace par
