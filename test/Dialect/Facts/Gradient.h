// Whether an op's reverse mode is its derivative, including results without a gradient.
#pragma once

#include "Instances.h"

#include "par/Dialect/Interfaces/Differentiable.h"
#include "par/Interpreter/Interpreter.h"

#include <limits>

namespace par::test {

/// An op's cotangents, as it builds them when those of its results are `weights` (null: nothing flows back).
class BuiltGradient {
public:
  /// Builds ops after a block's arguments for the weights; op and results are those of the instance.
  BuiltGradient(const Instance &instance, llvm::ArrayRef<Tensor> weights) {
    llvm::SmallVector<mlir::Value> cotangents;
    for (const Tensor &weight : weights) {
      cotangents.push_back(weight ? block.addArgument(weight.getType(), instance.op->getLoc()) : mlir::Value());
      if (weight)
        given[cotangents.back()] = weight;
    }
    for (auto [value, tensor] : llvm::zip_equal(instance.op->getOperands(), instance.operands))
      given[value] = tensor;
    for (auto [value, tensor] : llvm::zip_equal(instance.op->getResults(), instance.results))
      given[value] = tensor;
    mlir::OpBuilder builder = block.builder(instance.op->getContext());
    auto made = llvm::cast<DifferentiableOpInterface>(instance.op).differentiate(builder, cotangents);
    if (mlir::succeeded(made))
      gradients.emplace(made->begin(), made->end());
  }

  explicit operator bool() const { return gradients.has_value(); }
  mlir::Value of(unsigned operand) const { return (*gradients)[operand]; }
  unsigned size() const { return gradients->size(); }

  /// Operands and results of the op that the gradient reads, each once.
  llvm::SmallSetVector<mlir::Value, 4> reads() {
    llvm::SmallSetVector<mlir::Value, 4> values;
    for (mlir::Operation &op : block)
      for (mlir::Value operand : op.getOperands())
        if (given.count(operand) && operand.getParentBlock() != &block)
          values.insert(operand);
    return values;
  }
  /// The gradients' values where `changed` stands in for one value; null for those that are not built.
  std::optional<llvm::SmallVector<Tensor>> run(mlir::Value replaced = {}, const Tensor &changed = {}) {
    std::vector<interp::RankValues> values{given};
    if (replaced)
      values[0][replaced] = changed;
    for (mlir::Operation &op : block)
      if (mlir::failed(interp::runOp(op, values, MeshAttr())))
        return std::nullopt;
    llvm::SmallVector<Tensor> results;
    for (mlir::Value gradient : *gradients)
      results.push_back(gradient ? values[0].lookup(gradient) : Tensor());
    return results;
  }

private:
  LooseBlock block;
  interp::RankValues given;
  std::optional<llvm::SmallVector<mlir::Value>> gradients;
};

/// The sum of the results' elements, each times its weight.
inline double weighted(llvm::ArrayRef<Tensor> results, llvm::ArrayRef<Tensor> weights) {
  double sum = 0;
  for (auto [result, weight] : llvm::zip_equal(results, weights))
    if (weight)
      for (auto [x, w] : llvm::zip_equal(result.floats(), weight.floats()))
        sum += x * w;
  return sum;
}

/// Central differences of the weighted sum in one operand; nothing where the op has no value.
inline std::optional<Tensor> differenceQuotient(const Instance &instance, unsigned operand,
                                                llvm::ArrayRef<Tensor> weights) {
  constexpr double h = 1e-5;
  Tensor slope(instance.operands[operand].getType());
  for (int64_t i = 0; i < slope.getSize(); ++i) {
    double sums[2];
    for (int side : {0, 1}) {
      llvm::SmallVector<Tensor> moved = instance.operands;
      moved[operand].mutableFloats()[i] += side ? h : -h;
      auto results = interpret(instance.op, moved);
      if (!results)
        return std::nullopt;
      sums[side] = weighted(*results, weights);
    }
    slope.mutableFloats()[i] = (sums[1] - sums[0]) / (2 * h);
  }
  return slope;
}

/// Cotangents of the operands (null: none) against difference quotients of the weighted sum of the results.
inline std::string checkCotangents(const Instance &instance, llvm::ArrayRef<Tensor> weights,
                                   llvm::ArrayRef<Tensor> claimed) {
  for (auto [number, operand] : llvm::enumerate(instance.operands)) {
    const Tensor &claim = claimed[number];
    if (claim && claim.getType() != operand.getType())
      return llvm::formatv("the cotangent of operand {0} has another type", number);
    if (!operand.isFloat()) {
      if (claim)
        return llvm::formatv("operand {0} holds integers and has a cotangent", number);
      continue;
    }
    auto slope = differenceQuotient(instance, number, weights);
    if (!slope)
      return "has no value beside its operands";
    std::string difference = findDifference(claim ? claim : Tensor(operand.getType()), *slope, 1e-6);
    if (!difference.empty())
      return llvm::formatv("the cotangent of operand {0}{1} is {2}", number, claim ? "" : ", of which it builds none,",
                           difference);
  }
  return "";
}

/// Random weights for the results of `flowing`, none for the others.
inline llvm::SmallVector<Tensor> drawWeights(const Instance &instance, llvm::ArrayRef<bool> flowing, Chooser &choose) {
  llvm::SmallVector<Tensor> weights;
  for (auto [result, flows] : llvm::zip_equal(instance.results, flowing)) {
    weights.push_back(flows ? Tensor(result.getType()) : Tensor());
    if (flows)
      for (double &value : weights.back().mutableFloats())
        value = 0.5 + choose.real();
  }
  return weights;
}

/// With cotangents only for the results of `flowing`; nothing if the op refuses these, or has no finite values.
inline std::optional<std::string> checkGradient(const Instance &instance, llvm::ArrayRef<bool> flowing,
                                                Chooser &choose) {
  for (const Tensor &result : instance.results)
    if (result.isFloat() && !llvm::all_of(result.floats(), [](double value) { return std::isfinite(value); }))
      return std::nullopt;
  llvm::SmallVector<Tensor> weights = drawWeights(instance, flowing, choose);
  BuiltGradient gradient(instance, weights);
  if (!gradient)
    return std::nullopt;
  if (gradient.size() != instance.operands.size())
    return "builds another number of cotangents than it has operands";
  auto built = gradient.run();
  if (!built)
    return "builds cotangents that have no value";
  return checkCotangents(instance, weights, *built);
}

/// Operands and results that an op's gradient reads are kept from forward to backward: each must matter to it
/// somewhere. Adds reads to `read`, as `par.sin operand 0`, and values that change the gradient to `matters`.
inline void findNeeds(const Instance &instance, llvm::ArrayRef<bool> flowing, Chooser &choose, llvm::StringSet<> &read,
                      llvm::StringSet<> &matters) {
  BuiltGradient gradient(instance, drawWeights(instance, flowing, choose));
  if (!gradient)
    return;
  auto built = gradient.run();
  for (mlir::Value value : gradient.reads()) {
    auto result = llvm::dyn_cast<mlir::OpResult>(value);
    bool isResult = result && result.getOwner() == instance.op;
    unsigned number = isResult ? result.getResultNumber()
                               : llvm::find(instance.op->getOperands(), value) - instance.op->operand_begin();
    const Tensor &before = isResult ? instance.results[number] : instance.operands[number];
    if (!before.isFloat() || before.getSize() == 0)
      continue;
    std::string name = llvm::formatv("{0} {1} {2}", instance.name(), isResult ? "result" : "operand", number);
    read.insert(name);
    Tensor poisoned(before.getType());
    for (double &element : poisoned.mutableFloats())
      element = std::numeric_limits<double>::quiet_NaN();
    auto changed = gradient.run(value, poisoned);
    for (auto [x, y] : llvm::zip_equal(*built, *changed))
      if (x && !findDifference(y, x, 0).empty())
        matters.insert(name);
  }
}

} // namespace par::test
