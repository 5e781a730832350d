#include "par/Interpreter/Interpreter.h"
#include "par/Interpreter/Passes.h"

#include "par/format/PlainFile.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace par {

#define GEN_PASS_DEF_CHECKPHASESPASS
#include "par/Interpreter/Passes.h.inc"

/// Splits at commas outside of braces and parentheses.
static SmallVector<std::string> splitPipelines(StringRef text) {
  SmallVector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += (c == '{' || c == '(') - (c == '}' || c == ')');
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  llvm::erase_if(parts, [](const std::string &part) { return part.empty(); });
  return parts;
}

namespace {
struct CheckPhasesPass : impl::CheckPhasesPassBase<CheckPhasesPass> {
  using CheckPhasesPassBase::CheckPhasesPassBase;

  void getDependentDialects(DialectRegistry &) const override {}

  /// Reads the module that this one is compared with.
  LogicalResult readFirst(interp::PhaseCheck &check) {
    if (against.empty())
      return success();
    auto text = format::readPlainFile(against);
    if (!text)
      return emitError(getOperation().getLoc()) << against << ": cannot be opened: " << text.message();
    OwningOpRef<ModuleOp> other = parseSourceString<ModuleOp>(*text, &getContext(), against);
    return success(other && succeeded(check.check(*other)));
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    interp::PhaseCheck check(seed, tolerance);
    if (failed(readFirst(check)) || failed(check.check(module)))
      return signalPassFailure();
    for (const std::string &pipeline : splitPipelines(passes)) {
      PassManager manager(&getContext());
      if (failed(parsePassPipeline(pipeline, manager))) {
        emitError(module.getLoc()) << "\"" << pipeline << "\" is no pass pipeline";
        return signalPassFailure();
      }
      OwningOpRef<ModuleOp> after = module.clone();
      if (failed(manager.run(*after)) || failed(check.check(*after))) {
        emitError(module.getLoc()) << "the check of \"" << pipeline << "\" failed";
        return signalPassFailure();
      }
      module.getBodyRegion().takeBody(after->getBodyRegion());
    }
  }
};
} // namespace

} // namespace par
