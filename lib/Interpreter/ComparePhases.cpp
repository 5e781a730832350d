#include "par/Interpreter/Interpreter.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/Support/xxhash.h"

#include <cmath>
#include <random>

using namespace mlir;

namespace par::interp {

/// The same name and seed give the same values everywhere.
static std::mt19937_64 generatorFor(StringRef name, uint64_t seed) {
  return std::mt19937_64(llvm::xxh3_64bits(name) ^ (seed * 0x9E3779B97F4A7C15ull));
}

static Tensor randomTensor(StringRef name, RankedTensorType type, uint64_t seed, int64_t below) {
  std::mt19937_64 generator = generatorFor(name, seed);
  Tensor tensor(type);
  if (tensor.isFloat()) {
    for (double &x : tensor.mutableFloats())
      x = static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
  } else {
    for (int64_t &x : tensor.mutableInts())
      x = static_cast<int64_t>(generator() % static_cast<uint64_t>(below));
  }
  return tensor;
}

/// The least size of what integer values flowing from `value` index; follows ops that keep integers.
static int64_t rangeOf(Value value, int64_t below, int depth = 0) {
  if (depth > 16)
    return below;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto gather = dyn_cast<GatherOp>(user)) {
      if (use.getOperandNumber() == 1)
        below = std::min(below,
                         cast<RankedTensorType>(gather.getOperand().getType()).getDimSize(gather.getDim()));
    } else if (auto take = dyn_cast<TakeOp>(user)) {
      if (use.getOperandNumber() == 1)
        below =
            std::min(below, cast<RankedTensorType>(take.getOperand().getType()).getDimSize(take.getDim()));
    } else if (auto loss = dyn_cast<CrossEntropyOp>(user)) {
      below = std::min(below, cast<RankedTensorType>(loss.getLogits().getType()).getShape().back());
    } else if (auto loop = dyn_cast<LoopOp>(user)) {
      below =
          std::min(below, rangeOf(loop.getBody().getArgument(use.getOperandNumber() + 1), below, depth + 1));
    } else if (auto run = dyn_cast<RunOp>(user)) {
      auto fragment = run->getParentOfType<ModuleOp>().lookupSymbol<FragmentOp>(run.getFragment());
      below = std::min(below, rangeOf(fragment.getArgument(use.getOperandNumber()), below, depth + 1));
    } else {
      for (Value result : user->getResults())
        if (auto type = dyn_cast<RankedTensorType>(result.getType());
            type && type.getElementType().isInteger(64))
          below = std::min(below, rangeOf(result, below, depth + 1));
    }
  }
  return below;
}

Named makeInputs(StepOp step, uint64_t seed) {
  Named inputs;
  for (BlockArgument argument : step.getArguments()) {
    std::string name = step.getInputs()
                           ? cast<StringAttr>((*step.getInputs())[argument.getArgNumber()]).getValue().str()
                           : std::to_string(argument.getArgNumber());
    inputs[name] = randomTensor(name, getTensorType(argument.getType()), seed, rangeOf(argument, 1 << 20));
  }
  return inputs;
}

Named makeVariables(ModuleOp module, uint64_t seed) {
  Named variables;
  for (auto variable : module.getOps<VariableOp>()) {
    std::string name = variable.getSymName().str();
    if (variable.getKind() == VariableKind::copy || variable.getValue())
      continue;
    Tensor value = randomTensor(name, variable.getTensorType(), seed, 2);
    // Second moments and counts are not negative; a step has been done before.
    if (variable.getKind() == VariableKind::state)
      for (double &x : value.mutableFloats())
        x = std::fabs(x);
    if (variable.getKind() == VariableKind::counter && value.isFloat())
      llvm::fill(value.mutableFloats(), 1);
    if (variable.getKind() == VariableKind::hyper && value.isFloat())
      llvm::fill(value.mutableFloats(), 0.1);
    variables[name] = value;
  }
  return variables;
}

static LogicalResult compareNamed(StepOp step, StringRef what, const Named &before, const Named &after,
                                  double tolerance) {
  for (auto &[name, expected] : before) {
    auto found = after.find(name);
    if (found == after.end())
      continue;
    const Tensor &got = found->second;
    if (expected.getSize() != got.getSize() || expected.isFloat() != got.isFloat())
      return step.emitError() << what << " \"" << name << "\" was " << expected.getType() << ", is "
                              << got.getType();
    double largest = 0, difference = 0;
    for (int64_t i = 0, end = expected.getSize(); i < end; ++i) {
      double x = expected.isFloat() ? expected.floats()[i] : static_cast<double>(expected.ints()[i]);
      double y = got.isFloat() ? got.floats()[i] : static_cast<double>(got.ints()[i]);
      if (x == y || (std::isnan(x) && std::isnan(y)))
        continue;
      largest = std::max(largest, std::fabs(x));
      difference = std::isnan(x - y) ? INFINITY : std::max(difference, std::fabs(x - y));
    }
    for (int64_t i = 0, end = expected.isFloat() ? expected.getSize() : 0; i < end; ++i)
      largest = std::max(largest, std::fabs(expected.floats()[i]));
    if (difference > tolerance * largest)
      return step.emitError() << what << " \"" << name << "\" differs by " << difference << " of " << largest
                              << " after the phase";
  }
  return success();
}

LogicalResult comparePhases(ModuleOp before, ModuleOp after, uint64_t seed, double tolerance) {
  Named variables = makeVariables(before, seed);
  for (StepOp step : before.getOps<StepOp>()) {
    auto other = after.lookupSymbol<StepOp>(step.getSymName());
    if (!other)
      return step.emitError() << "is gone after the phase";
    Named inputs = makeInputs(step, seed);
    FailureOr<Outcome> expected = runStep(step, variables, inputs), got = failure();
    if (succeeded(expected))
      got = runStep(other, variables, inputs);
    if (failed(got) || failed(compareNamed(other, "output", expected->outputs, got->outputs, tolerance)) ||
        failed(compareNamed(other, "gradient of", expected->accumulators, got->accumulators, tolerance)) ||
        failed(compareNamed(other, "variable", expected->written, got->written, tolerance)))
      return failure();
  }
  return success();
}

} // namespace par::interp
