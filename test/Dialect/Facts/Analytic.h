// Whether an op is analytic where it is defined: a polynomial that equals it at Chebyshev's points of a line equals it
// everywhere on the line. With n points the error falls like r^-n for an analytic function, and like a power of 1 / n
// for a piecewise one (Trefethen 2013, theorems 7.2 and 8.2).
#pragma once

#include "Instances.h"

#include <numbers>

namespace par::test {

/// An elementwise op of floats as a function of one parameter: operand i is low[i] + (high[i] - low[i]) t, t in [0, 1].
class Line {
public:
  Line(mlir::Operation *op, std::vector<std::pair<double, double>> ends) : op(op), ends(std::move(ends)) {}

  /// Values at the parameters; the op is rebuilt for so many operands.
  std::vector<double> at(const std::vector<double> &parameters) const {
    LooseBlock block;
    auto type = mlir::RankedTensorType::get(parameters.size(), mlir::Float64Type::get(op->getContext()));
    llvm::SmallVector<mlir::Value> arguments;
    llvm::SmallVector<Tensor> operands;
    for (auto [low, high] : ends) {
      arguments.push_back(block.addArgument(type, op->getLoc()));
      std::vector<double> values;
      for (double t : parameters)
        values.push_back(low + (high - low) * t);
      operands.push_back(Tensor::ofFloats(type, values));
    }
    mlir::Operation *made = block.builder(op->getContext()).clone(*op);
    made->setOperands(arguments);
    made->getResult(0).setType(type);
    auto results = interpret(made, operands);
    return results ? (*results)[0].floats().vec() : std::vector<double>(parameters.size(), NAN);
  }

  /// Defined wherever some operand is 0, too, which Chebyshev's points need not meet.
  bool isDefined() const {
    std::vector<double> parameters{0, 1};
    for (auto [low, high] : ends)
      if (std::min(low, high) < 0 && std::max(low, high) > 0)
        parameters.push_back(-low / (high - low));
    for (int i = 0; i <= 64; ++i)
      parameters.push_back(i / 64.);
    return llvm::all_of(at(parameters), [](double value) { return std::abs(value) < 1e9; }); // not NaN either
  }

  /// The largest difference from the polynomial, as a share of the largest value.
  double error() const {
    constexpr int count = 128;
    std::vector<double> points, weights, between;
    for (int i = 0; i < count; ++i) {
      double angle = (2 * i + 1) * std::numbers::pi / (2 * count);
      points.push_back((1 + std::cos(angle)) / 2);
      weights.push_back((i % 2 ? -1 : 1) * std::sin(angle));
    }
    for (int i = 0; i < 500; ++i)
      between.push_back((i + 0.371) / 500.5);
    std::vector<double> values = at(points), wanted = at(between);
    double largest = 1e-3, error = 0;
    for (auto [t, value] : llvm::zip_equal(between, wanted)) {
      double above = 0, below = 0; // the barycentric formula
      for (auto [point, weight, known] : llvm::zip_equal(points, weights, values)) {
        above += weight * known / (t - point);
        below += weight / (t - point);
      }
      largest = std::max(largest, std::abs(value));
      error = std::max(error, std::abs(above / below - value));
    }
    return error / largest;
  }

private:
  mlir::Operation *op;
  std::vector<std::pair<double, double>> ends;
};

/// On lines through all choices of a positive range or one around 0 for each operand, where the op is defined.
inline std::string checkAnalytic(mlir::Operation *op) {
  unsigned lines = 0, operands = op->getNumOperands();
  auto isFloat = [](mlir::Type type) { return llvm::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(type)); };
  if (!llvm::all_of(op->getOperandTypes(), isFloat) || !llvm::all_of(op->getResultTypes(), isFloat))
    return "is analytic, but not of floats";
  for (unsigned choice = 0; choice < 1u << (2 * operands); ++choice) {
    std::vector<std::pair<double, double>> ends;
    for (unsigned i = 0; i < operands; ++i) {
      std::pair<double, double> range = choice >> i & 1 ? std::pair(0.25, 5.) : std::pair(-2.1, 1.9);
      ends.push_back(choice >> (operands + i) & 1 ? std::pair(range.second, range.first) : range);
    }
    Line line(op, ends);
    if (!line.isDefined())
      continue;
    ++lines;
    if (double error = line.error(); error > 1e-8)
      return llvm::formatv("is analytic, but on a line where it is defined no polynomial comes near: {0}", error).str();
  }
  return lines ? "" : "is analytic, but defined on no line";
}

} // namespace par::test
