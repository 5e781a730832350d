// Sizes shared by the kernels and their launches.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define PAR_BOTH __host__ __device__
#else
#define PAR_BOTH
#endif

namespace par::cuda {

inline constexpr unsigned elementsOfBlock = 4096;                 ///< optimizers
inline constexpr unsigned layerNormTile = 8;                      ///< rows whose gradient a block computes at a time
inline constexpr unsigned layerNormColumnsInShared = 4096;        ///< of both sums, 32 KiB
inline constexpr unsigned scatterRows = 32, scatterColumns = 256; ///< of the table, in one block
inline constexpr unsigned squaresThreads = 512;
/// Up to so many windows and elements of a plane, one block keeps the place of each window's largest element, in 16
/// bits.
inline constexpr unsigned poolWindowsInShared = 24576, poolPlaces = 65535; // 48 KiB

/// Blocks of `share` units that share `units`: at least one, at most 512.
PAR_BOTH constexpr unsigned partsOf(uint64_t units, uint64_t share) {
  uint64_t parts = (units + share - 1) / share;
  return static_cast<unsigned>(parts < 1 ? 1 : parts > 512 ? 512 : parts);
}
/// Whether the gradient of a max pool knows its windows' places, or asks each window again for each of its elements.
PAR_BOTH constexpr bool poolKeepsPlaces(uint64_t input, uint64_t output) {
  return output <= poolWindowsInShared && input <= poolPlaces;
}
/// How many blocks have sums of their own, which a second stage adds up.
PAR_BOTH constexpr unsigned layerNormParts(uint64_t rows) { return partsOf(rows, layerNormTile); }
PAR_BOTH constexpr unsigned squaresParts(uint64_t n) { return partsOf(n, uint64_t(squaresThreads) * 16); }

} // namespace par::cuda
