// Whether an op's integer range holds for its results.
#pragma once

#include "Instances.h"

#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace par::test {

/// As its type holds it; booleans are 0 and 1.
inline llvm::APInt heldBy(mlir::Type element, int64_t value) {
  return llvm::APInt(element.getIntOrFloatBitWidth(), uint64_t(value), true, true);
}

/// The range of a tensor's integers, or a wider one by up to `margin` if the type allows; a float's range is unknown.
inline mlir::ConstantIntRanges rangeOfElements(const Tensor &tensor, Chooser &choose, int64_t margin) {
  mlir::Type element = tensor.getType().getElementType();
  if (tensor.isFloat() || tensor.getSize() == 0)
    return mlir::ConstantIntRanges::maxRange(mlir::ConstantIntRanges::getStorageBitwidth(element));
  auto range = mlir::ConstantIntRanges::constant(heldBy(element, tensor.ints()[0]));
  for (int64_t value : tensor.ints()) {
    range = range.rangeUnion(mlir::ConstantIntRanges::constant(heldBy(element, value)));
    for (int64_t other : {choose.number(-margin, margin), choose.number(-margin, margin)})
      if (margin && !element.isInteger(1))
        range = range.rangeUnion(mlir::ConstantIntRanges::constant(heldBy(element, value + other)));
  }
  return range;
}

/// Each integer of a result is where the op says that it is, of operands that are where they are; nothing for ops that
/// do not say.
inline std::optional<std::string> checkRange(const Instance &instance, Chooser &choose,
                                             llvm::function_ref<void(mlir::ConstantIntRanges &)> change = nullptr) {
  auto model = llvm::dyn_cast<mlir::InferIntRangeInterface>(instance.op);
  if (!model || instance.results[0].isFloat())
    return std::nullopt;
  for (int64_t margin : {0, 3}) {
    llvm::SmallVector<mlir::ConstantIntRanges> operands;
    for (const Tensor &tensor : instance.operands)
      operands.push_back(rangeOfElements(tensor, choose, margin));
    std::optional<mlir::ConstantIntRanges> inferred;
    model.inferResultRanges(operands, [&](mlir::Value, const mlir::ConstantIntRanges &range) { inferred = range; });
    if (!inferred)
      continue;
    if (change)
      change(*inferred);
    for (int64_t value : instance.results[0].ints()) {
      llvm::APInt held = heldBy(instance.results[0].getType().getElementType(), value);
      if (held.slt(inferred->smin()) || held.sgt(inferred->smax()) || held.ult(inferred->umin()) ||
          held.ugt(inferred->umax()))
        return llvm::formatv("makes {0}, and says that all is in [{1}, {2}]", held.getSExtValue(),
                             inferred->smin().getSExtValue(), inferred->smax().getSExtValue())
            .str();
    }
  }
  return "";
}

} // namespace par::test
