// Generated kernels of a bundle for a GPU: launches, resources, traffic.
#pragma once

#include "par/Phases/Codegen/Codegen.h"
#include "par/format/Bundle.h"

#include "llvm/ADT/StringMap.h"

namespace par {

/// Resident threads of a kernel on a multiprocessor, in percent of the maximum: limited by registers, shared memory and
/// the numbers of blocks and threads (CUDA programming guide, "compute capabilities").
unsigned occupancy(llvm::StringRef sm, uint32_t threads, const KernelResources &resources);

/// Bytes that the loads and stores of a kernel's text move, each counted once.
struct Accesses {
  uint64_t all = 0, wide = 0; ///< `wide`: those of 16 bytes at once
};

/// Accesses in PTX, by kernel.
llvm::StringMap<Accesses> countAccesses(llvm::StringRef ptx);

/// One generated kernel on one GPU.
struct KernelUse {
  std::string gpu;    ///< "sm_90"
  std::string symbol; ///< in PTX and cubin
  std::string kernel; ///< of the program: the first that shares this code
  uint32_t blocks = 0, threads = 0;
  std::optional<KernelResources> resources; ///< nothing without machine code
  unsigned occupancy = 0;                   ///< percent; 0 without machine code
  uint64_t bytes = 0;                       ///< read and written by a launch
  double bytesPerElement = 0;               ///< of its largest operand
  unsigned widePercent = 0;                 ///< bytes of its text that are moved 16 at once
  unsigned launches = 0;                    ///< in all blocks of the programs
  bool onFewBlocks = false;                 ///< leaves most of a large GPU idle for long
};

struct KernelFacts {
  std::string device;
  bool assembled = false; ///< ptxas was found, so that resources are known
  std::vector<KernelUse> kernels;
};

KernelFacts describeKernels(const CompiledKernels &kernels, const format::Bundle &bundle);

} // namespace par
