#include "par/Interpreter/Interpreter.h"
#include "par/Interpreter/Passes.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_INTERPRETPASS
#include "par/Interpreter/Passes.h.inc"

/// `eval output "loss" tensor<f32> 0.5`
static void print(StringRef step, StringRef what, const interp::Named &tensors) {
  for (auto &[name, tensor] : tensors) {
    llvm::outs() << step << " " << what << " \"" << name << "\" " << tensor.getType();
    for (int64_t i = 0, end = std::min<int64_t>(tensor.getSize(), 8); i < end; ++i) {
      if (tensor.isFloat())
        llvm::outs() << llvm::format(" %.6g", tensor.floats()[i]);
      else
        llvm::outs() << " " << tensor.ints()[i];
    }
    llvm::outs() << (tensor.getSize() > 8 ? " ...\n" : "\n");
  }
}

/// Prints enough digits to distinguish any two doubles.
static void printExactly(StringRef what, StringRef name, const interp::Tensor &tensor) {
  llvm::outs() << what << " \"" << name << "\" " << tensor.getType();
  for (int64_t i = 0, end = tensor.getSize(); i < end; ++i) {
    if (tensor.isFloat())
      llvm::outs() << llvm::format(" %.17g", tensor.floats()[i]);
    else
      llvm::outs() << " " << tensor.ints()[i];
  }
  llvm::outs() << "\n";
}

static void printNorm(StringRef step, StringRef name, const interp::Tensor &tensor) {
  double squares = 0;
  for (double x : tensor.floats())
    squares += x * x;
  llvm::outs() << step << " norm \"" << name << "\" " << llvm::format("%.17g\n", std::sqrt(squares));
}

/// The k-th call's slices of the given arrays, which hold all steps; `drawn` has every input's type.
static FailureOr<interp::Named> sliceInputs(ModuleOp module, interp::Named drawn, const interp::Named &values,
                                            int64_t call) {
  for (auto &[name, input] : drawn) {
    auto found = values.find(name);
    if (found == values.end() || found->second.isFloat() != input.isFloat())
      return emitError(module.getLoc()) << "input \"" << name << "\", " << input.getType() << ", "
                                        << (found == values.end() ? "is not in the files of values"
                                                                  : "has another element type in the files of values");
    int64_t begin = call * input.getSize(), end = begin + input.getSize();
    if (end > found->second.getSize())
      return emitError(module.getLoc()) << "input \"" << name << "\" has " << found->second.getSize()
                                        << " elements, call " << call << " takes those up to " << end;
    if (input.isFloat())
      llvm::copy(found->second.floats().slice(begin, end - begin), input.mutableFloats().begin());
    else
      llvm::copy(found->second.ints().slice(begin, end - begin), input.mutableInts().begin());
  }
  return drawn;
}

namespace {
struct InterpretPass : impl::InterpretPassBase<InterpretPass> {
  using InterpretPassBase::InterpretPassBase;

  void runOnOperation() override {
    interp::Named given;
    for (const std::string &file : values) {
      std::string reason;
      std::optional<interp::Named> arrays = interp::readValues(file, &getContext(), reason);
      if (!arrays) {
        emitError(getOperation().getLoc()) << file << ": " << reason;
        return signalPassFailure();
      }
      given.merge(*arrays);
    }
    for (StringRef name : interp::entryNames(getOperation()))
      if (failed(values.empty() ? runOnce(name) : runOn(name, given)))
        return signalPassFailure();
  }

  LogicalResult runOnce(StringRef name) {
    interp::Named variables = interp::makeVariables(getOperation(), seed);
    FailureOr<interp::Outcome> outcome =
        interp::runEntry(getOperation(), name, variables, interp::makeInputs(getOperation(), name, seed));
    if (failed(outcome))
      return failure();
    print(name, "output", outcome->outputs);
    print(name, "gradient", outcome->accumulators);
    print(name, "variable", outcome->written);
    return success();
  }

  /// Runs consecutive calls: each starts from the variables that the previous one wrote.
  LogicalResult runOn(StringRef name, const interp::Named &given) {
    interp::Named variables, drawn = interp::makeInputs(getOperation(), name, seed);
    for (auto variable : getOperation().getOps<VariableOp>()) {
      auto found = given.find(variable.getSymName().str());
      bool starts = variable.getValue() || variable.getKind() == VariableKind::state ||
                    variable.getKind() == VariableKind::counter || variable.getKind() == VariableKind::copy;
      if (found == given.end() && starts)
        continue;
      if (found == given.end())
        return variable.emitError() << "variable \"" << variable.getSymName()
                                    << "\" has no value, and is not in the files of values";
      RankedTensorType type = variable.getTensorType();
      if (found->second.getSize() != type.getNumElements() ||
          found->second.isFloat() != isa<FloatType>(type.getElementType()))
        return variable.emitError() << "variable \"" << found->first << "\", " << type << ", is "
                                    << found->second.getType() << " in the files of values";
      variables[found->first] = found->second;
    }
    interp::Outcome last;
    for (int64_t call = 0; call < steps; ++call) {
      FailureOr<interp::Named> inputs = sliceInputs(getOperation(), drawn, given, call);
      if (failed(inputs))
        return failure();
      FailureOr<interp::Outcome> outcome = interp::runEntry(getOperation(), name, variables, *inputs);
      if (failed(outcome))
        return failure();
      for (auto &[output, tensor] : outcome->outputs)
        printExactly((name + " call " + Twine(call) + " output").str(), output, tensor);
      for (auto &[variable, tensor] : outcome->written)
        variables[variable] = tensor;
      last = std::move(*outcome);
    }
    for (auto &[variable, tensor] : last.written)
      if (tensor.isFloat())
        printNorm(name, variable, tensor);
    return success();
  }
};
} // namespace

} // namespace par
