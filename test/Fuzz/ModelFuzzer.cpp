// Any bytes given as an ONNX file are imported or refused with an error; nothing else may happen.
#include "InputFile.h"

#include "par/Phases/Import/Import.h"
#include "par/Phases/Import/Names.h"
#include "par/Phases/Import/Passes.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

using namespace par;

namespace {

/// Larger models show nothing new, and each takes the time of thousands of small ones.
constexpr uint64_t largest = uint64_t(1) << 20;

/// Imports with or without a loss. An accepted model must give IR that verifies, and pass Import's gate or be refused
/// by it. A refusal must come with an error.
void import(const onnx::Model &model, const ImportOptions &options) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  unsigned errors = 0;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(model, options, &context);
  if (bool(module) != (errors == 0))
    std::abort();
  if (!module)
    return;
  mlir::PassManager manager(&context);
  buildImportPipeline(manager);
  if (mlir::failed(manager.run(*module)) && errors == 0)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  par::test::InputFile file(data, size);
  std::string error;
  std::optional<onnx::Model> model = onnx::readModel(file.path(), error, largest);
  if (!model) {
    if (error.empty())
      std::abort();
    return 0;
  }
  NameTable names = collectNames(*model);
  ImportOptions options;
  for (const std::string &symbol : names.symbols)
    options.dims[symbol] = 4;
  import(*model, options);
  options.train = true;
  options.allowLost = true;
  import(*model, options);
  return 0;
}
