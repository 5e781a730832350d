// Compares gradients of an imported case with central differences of its outputs.
#include "GradientCheck.h"

#include "par/Dialect/Term.h"
#include "par/Phases/Train/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <random>

namespace par::test {
namespace {

using namespace mlir;
using interp::Named;
using interp::Tensor;

constexpr unsigned directions = 2;

class GradientCheck {
public:
  GradientCheck(ModuleOp module, const Named &given) : module(module), random(20) {
    step = module.lookupSymbol<StepOp>("predict");
    for (const auto &[name, value] : given)
      (value.isFloat() ? parameters : inputs)[name] = value.isFloat() ? moved(value) : value;
    for (auto variable : module.getOps<VariableOp>())
      if (variable.getKind() == VariableKind::parameter)
        parameters[variable.getSymName().str()] = moved(interp::initialValue(variable, {}));
  }

  CaseResult run() {
    makeParameters();
    if (!makeLoss())
      return {Verdict::Refused, "no output is of floats"};
    PassManager manager(module.getContext());
    manager.addPass(createDifferentiatePass());
    if (failed(manager.run(module)))
      return {Verdict::Refused, "cannot be differentiated"};
    double loss = lossAt();
    if (!std::isfinite(loss))
      return {Verdict::Refused, "its loss is not finite"};
    FailureOr<interp::Outcome> outcome = interp::runStep(module.lookupSymbol<StepOp>("train"), parameters, inputs);
    if (failed(outcome))
      return {Verdict::Wrong, "cannot be interpreted"};
    if (outcome->accumulators.empty())
      return {Verdict::Refused, "nothing has a gradient"};
    std::vector<std::string> names;
    for (const auto &[name, value] : parameters)
      names.push_back(name);
    for (const std::string &name : names)
      for (unsigned i = 0; i < directions; ++i)
        if (std::string difference = compare(name, outcome->accumulators); !difference.empty())
          return {Verdict::Wrong, difference};
    return {Verdict::Passed, std::to_string(outcome->accumulators.size())};
  }

private:
  double uniform() { return std::uniform_real_distribution<double>(-1, 1)(random); }

  Tensor moved(Tensor value) {
    for (double &element : value.mutableFloats())
      element = (std::isfinite(element) ? element * (1 + 0.01 * uniform()) : 0.5) + 1e-3 * uniform();
    return value;
  }

  void makeParameters() {
    OpBuilder builder(step);
    Block &block = step.getBlock();
    std::vector<std::string> names;
    for (StringAttr name : step.getInputsAttr().getAsRange<StringAttr>())
      names.push_back(name.getValue().str());
    std::vector<StringRef> kept;
    for (int64_t i = names.size() - 1; i >= 0; --i) {
      if (!parameters.count(names[i])) {
        kept.insert(kept.begin(), names[i]);
        continue;
      }
      BlockArgument argument = block.getArgument(i);
      auto type = cast<RankedTensorType>(argument.getType());
      VariableOp::create(builder, step.getLoc(), StringRef(names[i]), VariableKind::parameter, FlatSymbolRefAttr(),
                         type, TypeAttr(), ShardingAttr(), ArrayAttr(), ElementsAttr(), StringAttr(), DictionaryAttr());
      OpBuilder inside = OpBuilder::atBlockBegin(&block);
      argument.replaceAllUsesWith(ReadOp::create(inside, step.getLoc(), argument.getType(), names[i]));
      block.eraseArgument(i);
    }
    step.setInputsAttr(builder.getStrArrayAttr(kept));
    step.removeBatchDimsAttr();
  }

  /// Numbers of an output's elements, no two alike.
  Term weightsOf(OpBuilder &builder, RankedTensorType type) {
    auto flat = RankedTensorType::get(type.getNumElements(), builder.getI64Type());
    Term index(builder, step.getLoc(), IotaOp::create(builder, step.getLoc(), flat, 0));
    return (sin(index.convert(builder.getF64Type()) * 1.7 + 0.3) * 2.0).reshape(type.getShape());
  }

  bool makeLoss() {
    auto end = cast<ReturnOp>(step.getBlock().getTerminator());
    OpBuilder builder(end);
    Value loss;
    for (Value output : end.getOperands()) {
      auto type = cast<RankedTensorType>(output.getType());
      if (!isa<FloatType>(type.getElementType()) || type.getNumElements() == 0)
        continue;
      Value wide =
          type.getElementType().isF64() ? output : buildConvert(builder, step.getLoc(), output, builder.getF64Type());
      Term terms = Term(builder, step.getLoc(), wide) * weightsOf(builder, type);
      Value sum = type.getRank() ? terms.reduce(ReduceKind::sum, dimRange(0, type.getRank())) : terms;
      loss = loss ? AddOp::create(builder, step.getLoc(), loss, sum).getResult() : sum;
    }
    if (!loss)
      return false;
    end->setOperands(loss);
    step.setSymName("eval");
    step.setOutputsAttr(builder.getStrArrayAttr({"loss"}));
    step.setFunctionType(builder.getFunctionType(step.getBlock().getArgumentTypes(), loss.getType()));
    return true;
  }

  double lossAt() {
    FailureOr<interp::Outcome> outcome = interp::runStep(module.lookupSymbol<StepOp>("eval"), parameters, inputs);
    return failed(outcome) ? NAN : outcome->outputs.at("loss").floats()[0];
  }

  /// (loss(p + h d) - loss(p - h d)) / 2h.
  double slopeAlong(const std::string &name, const std::vector<double> &direction, double h) {
    Tensor at = parameters.at(name);
    auto lossMoved = [&](double by) {
      Tensor there = at;
      for (auto [element, d] : llvm::zip(there.mutableFloats(), direction))
        element += by * d;
      parameters[name] = there;
      double loss = lossAt();
      parameters[name] = at;
      return loss;
    };
    return (lossMoved(h) - lossMoved(-h)) / (2 * h);
  }

  /// "" if a gradient's part along a random direction equals the slope. A step that meets a kink is shortened.
  std::string compare(const std::string &name, const Named &gradients) {
    const Tensor &at = parameters.at(name);
    std::vector<double> direction(at.getSize());
    double size = 0, along = 0;
    for (double &d : direction)
      d = uniform();
    if (auto found = gradients.find(name); found != gradients.end())
      for (auto [g, d] : llvm::zip(found->second.floats(), direction)) {
        along += g * d;
        size += std::abs(g * d);
      }
    double slope = 0;
    for (double h : {1e-4, 1e-5, 1e-6}) {
      slope = slopeAlong(name, direction, h);
      if (std::abs(slope - along) <= 1e-5 * (size + std::abs(slope)) + 1e-6)
        return "";
    }
    return llvm::formatv("gradient of \"{0}\" along a direction is {1:e6}, the loss changes by {2:e6}", name, along,
                         slope);
  }

  ModuleOp module;
  StepOp step;
  Named inputs, parameters;
  std::mt19937_64 random;
};

} // namespace

CaseResult checkGradients(ModuleOp module, const Named &inputs) { return GradientCheck(module, inputs).run(); }

} // namespace par::test
