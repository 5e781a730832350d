// Mesh axes refined to primes.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace par {

/// Prime factors, ascending: 12 -> 2, 2, 3; 1 -> none. `number` is at least 1.
std::vector<int64_t> primeFactors(int64_t number);

/// An axis as axes of prime size, major first: "tp" of 4 -> "tp.0" of 2, "tp.1" of 2; "dp" of 3 -> "dp" of 3;
/// an axis of size 1 -> none. Larger primes are major, so that halves of an axis of size 6 are contiguous
/// ranks.
std::vector<std::pair<std::string, int64_t>> refineAxis(llvm::StringRef name, int64_t size);

/// An axis as part of one that is `common`, a multiple of its size: of the axes of that, those that it has not are of
/// size 1. "dp" of 2 in 4 -> "dp.0" of 2, "dp.1" of 1; in 6 -> "dp.0" (the 3) of 1, "dp.1" of 2.
std::vector<std::pair<std::string, int64_t>> refineAxis(llvm::StringRef name, int64_t size, int64_t common);

} // namespace par
