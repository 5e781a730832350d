// A module around one op, its operands, and its results.
#pragma once

#include "OpCases.h"
#include "Session.h"

#include <algorithm>
#include <cstdlib>

namespace par::test {

/// Number of cases of each kind that a test draws: from the environment's variable, which the long targets set, or a
/// few.
inline unsigned drawsOf(const char *variable, unsigned few) {
  const char *many = std::getenv(variable);
  return many ? std::max(1, std::atoi(many)) : few;
}

/// Numbers of an operand's range; see Chooser::values.
inline Tensor drawTensor(mlir::RankedTensorType type, const Input &input, Chooser &choose, unsigned index) {
  if (llvm::isa<mlir::FloatType>(type.getElementType()))
    return Tensor::ofFloats(type, choose.values(input, type.getNumElements(), index));
  std::vector<int64_t> values(type.getNumElements());
  for (int64_t &value : values)
    value = choose.number(static_cast<int64_t>(input.low), static_cast<int64_t>(input.high));
  return Tensor::ofInts(type, values);
}

/// `@eval(integers, %weight)` returns sum(%y * weight) + the sum of all operands, and %y: floats are
/// parameters @p0,
/// @p1, ..., the rest are inputs. The second sum makes every operand have two uses.
class OneOp {
public:
  OneOp(Session &session, const OpCase &made, Chooser &choose) {
    std::string variables, arguments, names, body, loss;
    unsigned count = 0;
    for (auto [i, input] : llvm::enumerate(made.inputs)) {
      std::string type = typeOf(input.shape, input.element);
      Tensor tensor = draw(session, input, choose, i);
      if (!tensor.isFloat()) {
        arguments += llvm::formatv("%{0}: {1}, ", i, type);
        names += llvm::formatv("\"i{0}\", ", i);
        inputs[llvm::formatv("i{0}", i)] = tensor;
        continue;
      }
      variables += llvm::formatv("par.variable @p{0} parameter : {1}\n", i, type);
      body += llvm::formatv("%{0} = par.read @p{0} : {1}\n", i, type);
      loss += llvm::formatv("%s{0} = par.reduce sum %{0} dims {1} : {2} to tensor<f64>\n"
                            "%l{3} = par.add %l{4}, %s{0} : tensor<f64>\n",
                            i, allDims(input.shape), type, count + 1, count);
      ++count;
      parameters[llvm::formatv("p{0}", i)] = tensor;
    }
    std::string type = typeOf(made.result);
    inputs["weight"] = draw(session, {made.result, 0.5, 1.5}, choose, 0);
    module =
        session.parse(llvm::formatv("{0}par.step @eval({1}%weight: {2}) -> (tensor<f64>, {2}) "
                                    "attributes {{inputs = [{3}\"weight\"], outputs = [\"loss\", \"y\"]} {{\n{4}{5}\n"
                                    "%yw = par.multiply %y, %weight : {2}\n"
                                    "%l0 = par.reduce sum %yw dims {6} : {2} to tensor<f64>\n"
                                    "{7}par.return %l{8}, %y : tensor<f64>, {2}\n}",
                                    variables, renamed(arguments), type, names, renamed(body), renamed(made.text),
                                    allDims(made.result), renamed(loss), count)
                          .str());
  }

  explicit operator bool() const { return static_cast<bool>(module); }
  Outcome evaluate(llvm::StringRef step) { return test::evaluate(*module, step, parameters, inputs); }
  double loss() { return evaluate("eval").outputs.at("loss").floats()[0]; }

  mlir::OwningOpRef<mlir::ModuleOp> module;
  Named inputs, parameters;

private:
  static std::string allDims(const Shape &shape) {
    std::vector<int64_t> dims(shape.size());
    std::iota(dims.begin(), dims.end(), 0);
    return listOf(dims);
  }
  static Tensor draw(Session &session, const Input &input, Chooser &choose, unsigned index) {
    return drawTensor(session.parseType(typeOf(input.shape, input.element)), input, choose, index);
  }
};

} // namespace par::test
