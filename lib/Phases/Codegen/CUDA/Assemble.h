#pragma once

#include "par/Phases/Codegen/Codegen.h"

namespace par::cuda {

/// What ptxas made of PTX.
struct Assembled {
  std::string cubin;
  /// By symbol.
  llvm::StringMap<KernelResources> resources;
};

/// The assembler of the CUDA toolkit: PAR_PTXAS, else on the PATH, else where the toolkit is installed by
/// default. Empty where there is none, or PAR_PTXAS is empty: then bundles have PTX alone, which the driver
/// assembles.
std::string findPtxas();

/// Runs it; `error` is what it said.
llvm::FailureOr<Assembled> assemble(const std::string &ptxas, llvm::StringRef ptx, llvm::StringRef sm,
                                    std::string &error);

/// What `ptxas -v` says of its kernels.
llvm::StringMap<KernelResources> parseResources(llvm::StringRef said);

} // namespace par::cuda
