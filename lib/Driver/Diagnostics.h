// Diagnostics of phases in the form of docs/plan.md §5.
#ifndef PAR_LIB_DRIVER_DIAGNOSTICS_H
#define PAR_LIB_DRIVER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace par {

/// Prints what phases emit while it lives:
///
///     plan.yaml:9:22: error: ...                       at a line of the plan, which is shown with a caret
///     gpt2.onnx: error: node "node_MatMul_41": ...     at what an ONNX node became
///       note: from transformer.h.0.mlp, modeling_gpt2.py:573
class PhaseDiagnostics {
public:
  PhaseDiagnostics(mlir::MLIRContext *context, llvm::StringRef model, llvm::raw_ostream &err);

private:
  mlir::LogicalResult print(mlir::Diagnostic &diagnostic);
  void printError(mlir::Location location, llvm::StringRef severity, llvm::StringRef message);

  std::string model;
  llvm::raw_ostream &err;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace par

#endif // PAR_LIB_DRIVER_DIAGNOSTICS_H
