#pragma once

#include "par/Phases/Codegen/Codegen.h"

namespace par::cuda {

/// Output of ptxas.
struct Assembled {
  std::string cubin;
  /// By symbol.
  llvm::StringMap<KernelResources> resources;
};

/// The assembler of the CUDA toolkit: PAR_PTXAS, else on the PATH, else in the toolkit's default place. Empty if there
/// is none, or if PAR_PTXAS is empty: bundles then have only PTX, which the driver assembles.
std::string findPtxas();

/// Runs it; `error` is its output.
llvm::FailureOr<Assembled> assemble(const std::string &ptxas, llvm::StringRef ptx, llvm::StringRef sm,
                                    std::string &error);

/// Resources of kernels in the output of `ptxas -v`.
llvm::StringMap<KernelResources> parseResources(llvm::StringRef said);

} // namespace par::cuda
