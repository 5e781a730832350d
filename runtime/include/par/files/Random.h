// Par's random numbers (docs/phases/dialect.md): Philox4x32-10 (Salmon et al., SC 2011), counted by global element, so
// that neither sharding nor microbatches change them. Key = seed; counter = (element low, element high, stream, step),
// stream = hash of the canonical name. Normals by Box-Muller with a logarithm and a cosine made only of IEEE additions,
// multiplications and divisions: every machine and device gets the same bits.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace par::core {

/// Four words of Philox4x32 after ten rounds.
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t seed) {
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53u) * counter[0], b = uint64_t(0xCD9E8D57u) * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// The stream of a canonical name: FNV-1a, 64 bits folded to 32.
inline constexpr uint32_t randomStream(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

inline std::array<uint32_t, 4> randomWords(uint64_t seed, uint64_t element, uint32_t stream, uint32_t step) {
  return philox({static_cast<uint32_t>(element), static_cast<uint32_t>(element >> 32), stream, step}, seed);
}

/// ln(x) of a positive normal x: x = m 2^k with m in [0.707, 1.414), ln m = 2 atanh((m - 1) / (m + 1)).
double naturalLog(double x);
/// cos(2 pi u) for u in [0, 1).
double cosineOfTurn(double u);

/// In [0, 1), 32 bits.
inline double randomUniform(uint64_t seed, uint64_t element, uint32_t stream, uint32_t step) {
  return randomWords(seed, element, stream, step)[0] * 0x1p-32;
}

/// Mean 0, deviation 1.
inline double randomNormal(uint64_t seed, uint64_t element, uint32_t stream, uint32_t step) {
  auto words = randomWords(seed, element, stream, step);
  return std::sqrt(-2.0 * naturalLog((words[0] + 1.0) * 0x1p-32)) * cosineOfTurn(words[1] * 0x1p-32);
}

} // namespace par::core
