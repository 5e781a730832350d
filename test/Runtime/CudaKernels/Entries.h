// The entries of the CUDA image, compiled for the emulation.
#pragma once

#include "Emulation.h"
#include "par/kernels/CudaBuiltins.h"

#include <string_view>

/// Launches an entry with its parameters, 8 bytes each. Throws if there is no such entry, or of another
/// parameter count.
void launchEntry(const par::kernels::CudaStage &stage, std::span<const uint64_t> parameters, uint64_t seed);

/// Launches a reduction of cudaReduce.
void launchReduce(const par::kernels::CudaStage &stage, void *out, const par::kernels::CudaSources &sources,
                  uint64_t members, uint64_t n, uint64_t op, uint64_t seed);
