#include "par/Interpreter/Interpreter.h"
#include "par/Interpreter/Passes.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

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

namespace {
struct InterpretPass : impl::InterpretPassBase<InterpretPass> {
  using InterpretPassBase::InterpretPassBase;

  void runOnOperation() override {
    interp::Named variables = interp::makeVariables(getOperation(), seed);
    for (StringRef name : interp::entryNames(getOperation())) {
      FailureOr<interp::Outcome> outcome =
          interp::runEntry(getOperation(), name, variables, interp::makeInputs(getOperation(), name, seed));
      if (failed(outcome))
        return signalPassFailure();
      print(name, "output", outcome->outputs);
      print(name, "gradient", outcome->accumulators);
      print(name, "variable", outcome->written);
    }
  }
};
} // namespace

} // namespace par
