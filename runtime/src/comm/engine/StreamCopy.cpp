// Copies that bypass the caches.
#include "StreamCopy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <emmintrin.h>

void par::comm::streamCopy(void *to, const void *from, size_t bytes) {
  constexpr size_t line = 64, part = sizeof(__m128i);
  std::byte *out = static_cast<std::byte *>(to);
  const std::byte *in = static_cast<const std::byte *>(from);
  size_t head = std::min(bytes, size_t(-uintptr_t(out) % line));
  std::memcpy(out, in, head);
  size_t i = head;
  for (; i + line <= bytes; i += line) {
    __m128i parts[line / part];
    for (size_t k = 0; k < line / part; ++k)
      parts[k] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(in + i + k * part));
    for (size_t k = 0; k < line / part; ++k)
      _mm_stream_si128(reinterpret_cast<__m128i *>(out + i + k * part), parts[k]);
  }
  std::memcpy(out + i, in + i, bytes - i);
  _mm_sfence();
}
