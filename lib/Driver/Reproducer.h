// Writes the reproducer of an internal error.
#pragma once

#include "par/Compiler/Phases.h"

#include "mlir/IR/BuiltinOps.h"

namespace par {

/// A file that shows the error again: the command and the completed plan as comments, then, from the first phase on,
/// the module that the phase begins with and its passes, in the form of MLIR's own reproducers (`par-opt
/// --run-reproducer`). `module` and `phase` may be null.
std::string writeReproducer(llvm::StringRef command, llvm::StringRef name, const Plan &plan, mlir::ModuleOp module,
                            const Phase *phase);

} // namespace par
