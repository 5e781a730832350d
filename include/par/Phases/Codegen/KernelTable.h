// Facts of kernels without their code, for bundles that are played and not run.
#pragma once

#include "par/Phases/Codegen/Codegen.h"

namespace par {

/// What `compileKernels` says of each kernel, without code: its operands, scratch, launch and operations. Takes a tenth
/// of the time.
llvm::FailureOr<CompiledKernels> tabulateKernels(mlir::ModuleOp module, const CodegenOptions &options = {});

} // namespace par
