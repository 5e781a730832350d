// The sizes on which the kernels and those who launch them agree.
#pragma once

namespace par::cuda {

inline constexpr unsigned elementsOfBlock = 4096;         ///< optimizers
inline constexpr unsigned layerNormTile = 8;              ///< rows whose gradient a block computes at a time
inline constexpr unsigned layerNormParts = 512;           ///< most blocks, each with sums of its own
inline constexpr unsigned layerNormColumnsInShared = 4096; ///< of both sums, 32 KiB
inline constexpr unsigned scatterRows = 32, scatterColumns = 256; ///< of the table, in one block
inline constexpr unsigned squaresThreads = 512;           ///< and most blocks

} // namespace par::cuda
