// The builtin kernels on a CUDA device: which entries of the image a builtin launches, and how. Pure
// functions of a name and immediates: the host asks them when it loads a program, tests and tables ask them
// without a device.
//
// An entry's parameters are 8 bytes each: the pointers of the operands that are there, in the order of
// Builtins.h, then the pointer of the scratch memory if the launch needs some, then the immediates.
#pragma once

#include "par/kernels/Builtins.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace par::kernels {

/// One kernel launch.
struct CudaStage {
  std::string_view entry;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t shared = 0; ///< bytes of dynamic shared memory; at most 48 KiB, so that no attribute need be set
};

/// Launches of a builtin, in this order on one stream. All stages take the same arguments. `scratch` bytes, aligned to
/// 16, must be the kernel's own from its first stage to its last; they need not be set.
struct CudaLaunch {
  std::array<CudaStage, 2> storage;
  unsigned count = 1;
  uint64_t scratch = 0;
  std::span<const CudaStage> stages() const { return {storage.data(), count}; }
};

/// The launch of a builtin; nothing if it has no CUDA kernel, or none for such sizes. Grids depend only on the
/// immediates, so that results do not depend on the device.
std::optional<CudaLaunch> cudaLaunch(std::string_view name, std::span<const uint64_t> imm);

/// Elements of an operand of the table, bytes of one, and the least that a builtin can move: every operand
/// that is there once, twice if it is read and written; of a table whose rows are picked, as many rows as
/// are.
uint64_t operandElements(const BuiltinKernel &kernel, size_t operand, std::span<const uint64_t> imm);
uint64_t typeBytes(std::string_view type);
uint64_t bytesMoved(const BuiltinKernel &kernel, std::span<const uint64_t> imm);

/// Most members of one reduction.
inline constexpr unsigned cudaReduceMembers = 16;

/// The pointers of a reduction's sources, one parameter of 128 bytes.
struct CudaSources {
  const void *at[cudaReduceMembers];
};

/// out[i] = sources[0][i] op sources[1][i] op ... for n elements, as comm::reduce does, for ranks that share
/// a device. Parameters: out, CudaSources, members, n, op (0 sum, 1 max, 2 min, 3 prod). `out` may be one of
/// the sources. `type` as programs write it: f64 f32 bf16 f16 i64 i32 i16 i8 u8 i1.
std::optional<CudaStage> cudaReduce(std::string_view type, unsigned members, uint64_t n);

/// Copies bytes; parameters: to, from, bytes.
CudaStage cudaCopy(uint64_t bytes);

/// Every entry that the functions above can name.
std::span<const std::string_view> cudaEntries();

/// The fatbin with all entries (sm_80, sm_90, sm_100 and PTX) for cuModuleLoadData; empty where the runtime
/// was built without nvcc.
std::span<const std::byte> cudaImage();

} // namespace par::kernels
