// Facts of kernels without their code, for bundles that are played and not run.
#pragma once

#include "par/Phases/Codegen/Codegen.h"

namespace par {

/// The table of `compileKernels` without code: operands, scratch, launch and operations of each kernel.
llvm::FailureOr<CompiledKernels> tabulateKernels(mlir::ModuleOp module, const CodegenOptions &options = {});

} // namespace par
