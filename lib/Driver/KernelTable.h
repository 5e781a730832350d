#pragma once

#include "par/Phases/Codegen/Codegen.h"
#include "par/format/Bundle.h"

#include "llvm/ADT/StringMap.h"

namespace par {

/// Threads that a multiprocessor holds of a kernel, in percent of the most that it can hold: what registers,
/// shared memory and the numbers of blocks and threads allow (CUDA programming guide, "compute
/// capabilities").
unsigned occupancy(llvm::StringRef sm, uint32_t threads, const KernelResources &resources);

/// Bytes that the loads and stores of a kernel's text move, each counted once.
struct Accesses {
  uint64_t all = 0, wide = 0; ///< `wide`: those of 16 bytes at once
};

/// Of PTX, by kernel.
llvm::StringMap<Accesses> countAccesses(llvm::StringRef ptx);

/// A line for each generated kernel of a bundle for a GPU: threads, what it takes, what it moves.
void printKernels(const CompiledKernels &kernels, const format::Bundle &bundle, llvm::raw_ostream &out);

} // namespace par
