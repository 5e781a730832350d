// Diagnostics of phases as findings, in the form of docs/plan.md §5.
#pragma once

#include "par/Compiler/CompileDiagnostic.h"

#include "mlir/IR/Diagnostics.h"

namespace par {

/// Forwards the diagnostics of phases during its lifetime:
///
///     plan.yaml:9:22: error: ...                       at a line of the plan, which is shown with a caret
///     gpt2.onnx: error: node "node_MatMul_41": ...     at an ONNX node
///     note: from transformer.h.0.mlp, modeling_gpt2.py:573
class PhaseDiagnostics {
public:
  PhaseDiagnostics(mlir::MLIRContext *context, llvm::StringRef model, DiagnosticSink sink);

private:
  mlir::LogicalResult handOn(mlir::Diagnostic &diagnostic);
  CompileDiagnostic locate(mlir::Location location, llvm::StringRef message);

  std::string model;
  DiagnosticSink sink;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace par
