#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace par::cpu {

/// Whether LLVM knows an x86-64 level or processor of this name; after codegen::prepareThreads.
bool isKnownIsa(llvm::StringRef isa);

/// Object file of a module in the LLVM dialect, optimised for `isa`.
llvm::FailureOr<std::string> compileObject(mlir::ModuleOp module, llvm::StringRef isa);

/// Object file of an LLVM module, optimised for `isa`.
llvm::FailureOr<std::string> emitObject(llvm::Module &module, llvm::StringRef isa);

/// Object file with the functions that LLVM may call: of memory, and of rounding on processors before
/// SSE 4.1.
llvm::FailureOr<std::string> compileSupport(llvm::StringRef isa);

/// Links objects to a shared object that needs nothing. `error` says why it could not.
llvm::FailureOr<std::string> linkObjects(const std::vector<std::string> &objects, std::string &error);

} // namespace par::cpu
