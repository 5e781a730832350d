// Whether an op fulfils its traits, its folder and its cost: which elements depend on which.
#pragma once

#include "Instances.h"

#include "par/Dialect/Interfaces/Cost.h"

#include <bit>
#include <limits>

namespace par::test {

/// Element i of the result is element order[i] of the tensor.
inline Tensor permuted(const Tensor &tensor, llvm::ArrayRef<int64_t> order) {
  Tensor result(tensor.getType());
  for (auto [to, from] : llvm::enumerate(order))
    if (tensor.isFloat())
      result.mutableFloats()[to] = tensor.floats()[from];
    else
      result.mutableInts()[to] = tensor.ints()[from];
  return result;
}

/// Elementwise: element i of the results depends only on elements i of the operands, in the same way for all i.
inline std::optional<std::string> checkElementwise(const Instance &instance, Chooser &choose) {
  int64_t size = instance.results[0].getSize();
  if (size < 2)
    return std::nullopt;
  for (const auto &tensors : {instance.operands, instance.results})
    for (const Tensor &tensor : tensors)
      if (tensor.getShape() != instance.results[0].getShape())
        return "is Elementwise, but operands and results have not one shape";
  std::vector<int64_t> order = choose.permutation(size);
  llvm::SmallVector<Tensor> operands;
  for (const Tensor &tensor : instance.operands)
    operands.push_back(permuted(tensor, order));
  auto results = interpret(instance.op, operands);
  if (!results)
    return "is Elementwise, but has no value for its operands in another order";
  for (auto [actual, result] : llvm::zip_equal(*results, instance.results))
    if (std::string difference = findDifference(actual, permuted(result, order), 0); !difference.empty())
      return "is Elementwise, but of elements in another order gives " + difference;
  return "";
}

inline std::optional<std::string> checkCommutative(const Instance &instance) {
  llvm::SmallVector<Tensor> operands(llvm::reverse(instance.operands));
  auto results = interpret(instance.op, operands);
  if (!results)
    return "is Commutative, but has no value for its operands in another order";
  std::string difference = findDifference((*results)[0], instance.results[0], 1e-15);
  return difference.empty() ? "" : "is Commutative, but of operands in another order gives " + difference;
}

inline double roundedToBF16(double x) {
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  return std::isfinite(x) ? std::bit_cast<float>((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000) : x;
}

/// An op of no operations that is not elementwise is a layout op: MixPrecision keeps it in low precision, as rounding
/// before it equals rounding after it. The elements of its result are those of its operands, attributes or zero.
inline std::optional<std::string> checkLayoutOp(const Instance &instance) {
  llvm::SmallVector<Tensor> operands = instance.operands;
  std::set<double> known{0};
  bool ofFloats = false;
  for (Tensor &operand : operands)
    if (operand.isFloat()) {
      known.insert(operand.floats().begin(), operand.floats().end());
      for (double &value : operand.mutableFloats())
        value = roundedToBF16(value);
      ofFloats = true;
    }
  for (mlir::NamedAttribute attribute : instance.op->getAttrs())
    if (auto value = llvm::dyn_cast<mlir::FloatAttr>(attribute.getValue()))
      known.insert(value.getValueAsDouble());
  if (!ofFloats || !instance.results[0].isFloat())
    return std::nullopt;
  for (double value : instance.results[0].floats())
    if (!known.count(value))
      return llvm::formatv("costs no operations and is not Elementwise, but makes {0}, which no operand has", value);
  auto results = interpret(instance.op, operands);
  Tensor expected = instance.results[0];
  for (double &value : expected.mutableFloats())
    value = roundedToBF16(value);
  if (!results || !findDifference((*results)[0], expected, 0).empty())
    return "costs no operations and is not Elementwise, but rounding before it is not rounding behind it";
  return "";
}

/// An op that fuses into a neighbour's loop reads at most one element of each operand for an element of its results: it
/// would read others again for every element otherwise.
inline std::optional<std::string> checkFusable(const Instance &instance) {
  bool checked = false;
  for (auto [number, operand] : llvm::enumerate(instance.operands)) {
    if (!operand.isFloat() || !instance.results[0].isFloat())
      continue;
    checked = true;
    std::vector<unsigned> reads(instance.results[0].getSize());
    for (int64_t i = 0; i < operand.getSize(); ++i) {
      llvm::SmallVector<Tensor> operands = instance.operands;
      operands[number].mutableFloats()[i] = std::numeric_limits<double>::quiet_NaN();
      auto results = interpret(instance.op, operands);
      if (!results)
        return "has no value for NaN";
      for (auto [count, value, before] : llvm::zip_equal(reads, (*results)[0].floats(), instance.results[0].floats()))
        count += std::isnan(value) && !std::isnan(before);
    }
    if (llvm::any_of(reads, [](unsigned count) { return count > 1; }))
      return llvm::formatv("is fusable, but reads several elements of operand {0} for one of its result", number).str();
  }
  return checked ? std::optional<std::string>("") : std::nullopt;
}

/// Elements of a tensor as a constant of its type; nothing if the type cannot represent them exactly.
inline mlir::Attribute constantOf(const Tensor &tensor) {
  mlir::Type element = tensor.getType().getElementType();
  llvm::SmallVector<mlir::Attribute> elements;
  for (int64_t i = 0; i < tensor.getSize(); ++i)
    elements.push_back(tensor.isFloat() ? mlir::Attribute(mlir::FloatAttr::get(element, tensor.floats()[i]))
                                        : mlir::Attribute(mlir::IntegerAttr::get(element, tensor.ints()[i])));
  return mlir::DenseElementsAttr::get(tensor.getType(), elements);
}

/// An op's fold, with some operands known, equals its results; nothing if it does not fold.
inline std::optional<std::string> checkFold(const Instance &instance) {
  std::optional<std::string> found;
  llvm::SmallVector<mlir::Attribute> none(instance.operands.size()), known;
  bool exact = true;
  for (const Tensor &tensor : instance.operands) {
    exact &= !tensor.isFloat() || tensor.getType().getElementType().isF64();
    known.push_back(tensor.getSize() ? constantOf(tensor) : mlir::Attribute());
  }
  for (llvm::ArrayRef<mlir::Attribute> operands : {llvm::ArrayRef(none), llvm::ArrayRef(known)}) {
    mlir::Operation *op = instance.op->clone();
    llvm::SmallVector<mlir::OpFoldResult> folded;
    bool folds = mlir::succeeded(op->fold(operands, folded)) && !folded.empty();
    Tensor made;
    if (folds && llvm::isa<mlir::Attribute>(folded[0]) && exact)
      made = Tensor::ofAttribute(llvm::cast<mlir::ElementsAttr>(llvm::cast<mlir::Attribute>(folded[0])));
    if (folds && llvm::isa<mlir::Value>(folded[0]))
      for (auto [value, tensor] : llvm::zip_equal(instance.op->getOperands(), instance.operands))
        if (value == llvm::cast<mlir::Value>(folded[0]))
          made = tensor;
    op->destroy();
    if (!made)
      continue;
    if (std::string difference = findDifference(made, instance.results[0], 0); !difference.empty())
      return "folds to " + difference;
    found = "";
  }
  return found;
}

} // namespace par::test
