// FIPS 180-4.
#include "par/format/Sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

using namespace par::format;

// FIPS 180-4, 4.2.2: fractional parts of the cube roots of the first 64 primes.
static constexpr uint32_t roundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#ifdef __x86_64__
/// Leaf 7 of cpuid, bit 29 of ebx: the processor has instructions for it, ten times as fast.
static bool hasInstructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}

/// Four rounds a turn. The instructions want the state as (a b e f) and (c d g h), from the highest word to the lowest;
/// the 16 current words of the schedule are in four registers, the oldest of which is replaced.
__attribute__((target("sha,ssse3,sse4.1"))) static void blockByInstructions(uint32_t *state, const uint8_t *data) {
  auto *place = reinterpret_cast<__m128i *>(state);
  const __m128i bigEndian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(place), 0xb1),
          efgh = _mm_shuffle_epi32(_mm_loadu_si128(place + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  const __m128i abefBefore = abef, cdghBefore = cdgh;
  __m128i w[4];
  for (int i = 0; i < 4; ++i)
    w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(data) + i), bigEndian);
  for (int i = 0; i < 16; ++i) {
    __m128i &oldest = w[i % 4], newest = w[(i + 3) % 4];
    __m128i sum = _mm_add_epi32(oldest, _mm_loadu_si128(reinterpret_cast<const __m128i *>(roundConstants) + i));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    __m128i next =
        _mm_add_epi32(_mm_sha256msg1_epu32(oldest, w[(i + 1) % 4]), _mm_alignr_epi8(newest, w[(i + 2) % 4], 4));
    oldest = _mm_sha256msg2_epu32(next, newest);
  }
  abef = _mm_shuffle_epi32(_mm_add_epi32(abef, abefBefore), 0x1b),
  cdgh = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdghBefore), 0xb1);
  _mm_storeu_si128(place, _mm_blend_epi16(abef, cdgh, 0xf0));
  _mm_storeu_si128(place + 1, _mm_alignr_epi8(cdgh, abef, 8));
}
#endif

void Sha256::block(const uint8_t *data) {
#ifdef __x86_64__
  static const bool byInstructions = hasInstructions();
  if (byInstructions && !plain)
    return blockByInstructions(state.data(), data);
#endif
  blockByWords(data);
}

void Sha256::blockByWords(const uint8_t *data) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t(data[4 * i]) << 24 | uint32_t(data[4 * i + 1]) << 16 | uint32_t(data[4 * i + 2]) << 8 |
           data[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int i = 0; i < 64; ++i) {
    uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + roundConstants[i] + w[i];
    uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t next[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i)
    state[i] += next[i];
}

void Sha256::update(std::string_view bytes) {
  const auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  size_t size = bytes.size(), have = total % 64;
  total += size;
  if (have) {
    size_t take = std::min(size, 64 - have);
    std::memcpy(pending.data() + have, data, take);
    data += take, size -= take;
    if (have + take < 64)
      return;
    block(pending.data());
  }
  for (; size >= 64; data += 64, size -= 64)
    block(data);
  if (size)
    std::memcpy(pending.data(), data, size);
}

std::string Sha256::digest() {
  uint64_t bits = total * 8;
  std::string tail(1, '\x80');
  tail.append((119 - total % 64) % 64, '\0');
  for (int i = 7; i >= 0; --i)
    tail.push_back(char(bits >> (8 * i)));
  update(tail);
  std::string bytes;
  for (uint32_t word : state)
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(char(word >> shift));
  return bytes;
}

std::string Sha256::finish() { return toHex(digest()); }

std::string par::format::toHex(std::string_view bytes) {
  std::string hex;
  for (unsigned char byte : bytes) {
    hex.push_back("0123456789abcdef"[byte >> 4]);
    hex.push_back("0123456789abcdef"[byte & 15]);
  }
  return hex;
}

std::string par::format::sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}
