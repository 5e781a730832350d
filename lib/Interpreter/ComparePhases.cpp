#include "par/Dialect/Calls.h"
#include "par/Dialect/Modes.h"
#include "par/Interpreter/Interpreter.h"

#include <cmath>

using namespace mlir;

namespace par::interp {

/// How far two tensors are apart, and the largest element.
static std::pair<double, double> distance(const Tensor &expected, const Tensor &got) {
  double largest = 0, difference = 0;
  for (int64_t i = 0, end = expected.getSize(); i < end; ++i) {
    double x = expected.isFloat() ? expected.floats()[i] : static_cast<double>(expected.ints()[i]);
    double y = got.isFloat() ? got.floats()[i] : static_cast<double>(got.ints()[i]);
    if (expected.isFloat() && std::isfinite(x))
      largest = std::max(largest, std::fabs(x));
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    difference = std::isnan(x - y) ? INFINITY : std::max(difference, std::fabs(x - y));
  }
  return {difference, largest};
}

static double largestOf(const Named &tensors) {
  double largest = 0;
  for (auto &[name, tensor] : tensors)
    largest = std::max(largest, distance(tensor, tensor).second);
  return largest;
}

/// A tensor that vanishes in exact arithmetic (the gradient of a key's bias) is noise: it is held against a
/// thousandth of the largest of its kind.
static LogicalResult compareNamed(Operation *at, StringRef what, const Named &before, const Named &after,
                                  double tolerance) {
  double least = 1e-3 * largestOf(before);
  for (auto &[name, expected] : before) {
    auto found = after.find(name);
    if (found == after.end())
      return at->emitError() << what << " \"" << name << "\" is gone after the phase";
    const Tensor &got = found->second;
    if (expected.getSize() != got.getSize() || expected.isFloat() != got.isFloat())
      return at->emitError() << what << " \"" << name << "\" was " << expected.getType() << ", is " << got.getType();
    auto [difference, largest] = distance(expected, got);
    if (expected.isFloat() && llvm::any_of(expected.floats(), [](double x) { return std::isnan(x); }))
      at->emitWarning() << what << " \"" << name << "\" is NaN on these inputs, which proves little";
    if (difference > tolerance * std::max(largest, least))
      return at->emitError() << what << " \"" << name << "\" differs by " << difference << " of " << largest
                             << " after the phase";
  }
  return success();
}

/// The op at which errors of an entry are reported.
static Operation *findEntry(ModuleOp module, StringRef name) {
  if (auto step = module.lookupSymbol<StepOp>(name))
    return step;
  return SymbolTable::lookupSymbolIn(*module.getOps<ProgramOp>().begin(), name);
}

static LogicalResult compareOutcomes(Operation *at, const Outcome &expected, const Outcome &got, double tolerance) {
  // Only one error of each kind is reported: a wrong gradient explains a wrong norm and a wrong weight.
  LogicalResult outputs = compareNamed(at, "output", expected.outputs, got.outputs, tolerance),
                gradients = compareNamed(at, "gradient of", expected.accumulators, got.accumulators, tolerance),
                variables = compareNamed(at, "variable", expected.written, got.written, tolerance);
  return success(succeeded(outputs) && succeeded(gradients) && succeeded(variables));
}

LogicalResult PhaseCheck::check(ModuleOp module) {
  SmallVector<StringRef> names = entryNames(module);
  for (auto &[name, entry] : entries)
    if (!llvm::is_contained(names, name))
      return mlir::emitError(module.getLoc()) << "entry @" << name << " is gone after the phase";
  if (names.empty())
    return mlir::emitError(module.getLoc()) << "nothing to compare: the module has neither a step nor an entry";
  Named variables = makeVariables(module, seed);
  // Before Train an entry still selects by its mode. It runs in evaluation, as the entry of this name does after Train,
  // which moves its writes (moving statistics, buffers) to the trained entry.
  auto mode = module.lookupSymbol<VariableOp>(trainingVariable);
  if (mode)
    variables[trainingVariable.str()] = Tensor::ofInts(mode.getTensorType(), {0});
  compared = {};
  for (StringRef name : names) {
    auto [at, first] = entries.try_emplace(name.str());
    Entry &entry = at->second;
    if (first)
      entry.inputs = makeInputs(module, name, seed);
    auto step = module.lookupSymbol<StepOp>(name);
    if (auto others = step ? step->getAttrOfType<ArrayAttr>(unaccumulatedAttr) : ArrayAttr())
      for (StringRef variable : others.getAsValueRange<StringAttr>())
        entry.outcome.accumulators.erase(variable.str());
    // From the phase on that lets an entry call the step several times, a single call must still give the same outcome.
    int64_t calls = step ? getCalls(step) : entry.calls;
    if (!first && calls != entry.calls) {
      FailureOr<Outcome> once = runStep(step, variables, entry.inputs, 1);
      if (failed(once) || failed(compareOutcomes(step, entry.outcome, *once, tolerance)))
        return failure();
      entry.inputs = makeInputs(module, name, seed);
      first = true;
    }
    entry.calls = calls;
    FailureOr<Outcome> outcome = runEntry(module, name, variables, entry.inputs);
    if (failed(outcome))
      return failure();
    if (mode || name == "eval")
      outcome->written.clear();
    if (first)
      entry.outcome = std::move(*outcome);
    else if (failed(compareOutcomes(findEntry(module, name), entry.outcome, *outcome, tolerance)))
      return failure();
    compared.outputs += entry.outcome.outputs.size();
    compared.gradients += entry.outcome.accumulators.size();
    compared.variables += entry.outcome.written.size();
  }
  return success();
}

LogicalResult comparePhases(ModuleOp before, ModuleOp after, uint64_t seed, double tolerance) {
  PhaseCheck check(seed, tolerance);
  return success(succeeded(check.check(before)) && succeeded(check.check(after)));
}

} // namespace par::interp
