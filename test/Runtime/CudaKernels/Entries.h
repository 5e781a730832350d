// The entries of the CUDA image: compiled for the emulation (Entries.cpp), or on a GPU (Device/Entries.cpp). The same
// tests run on both.
#pragma once

#include "Emulation.h"
#include "par/kernels/CudaBuiltins.h"

#include <string_view>
#include <vector>

/// Memory that entries can reach: any with the emulation, pinned for a GPU.
void *allocateReachable(size_t bytes);
void releaseReachable(void *memory, size_t bytes);

template <typename T>
struct Reachable {
  using value_type = T;
  T *allocate(size_t count) { return static_cast<T *>(allocateReachable(count * sizeof(T))); }
  void deallocate(T *memory, size_t count) { releaseReachable(memory, count * sizeof(T)); }
  bool operator==(const Reachable &) const { return true; }
};
using Bytes = std::vector<std::byte, Reachable<std::byte>>;

/// Launches an entry with its parameters, 8 bytes each. Throws if there is no such entry, or of another
/// parameter count.
void launchEntry(const par::kernels::CudaStage &stage, std::span<const uint64_t> parameters, uint64_t seed);

/// Launches a reduction of cudaReduce.
void launchReduce(const par::kernels::CudaStage &stage, void *out, const par::kernels::CudaSources &sources,
                  uint64_t members, uint64_t n, uint64_t op, uint64_t seed);
