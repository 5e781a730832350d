#include "par/files/Checksum.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace par::core {

namespace {

using Streams = std::array<uint32_t, 4>;

/// CRC32C of a byte in the lowest place, reflected polynomial.
constexpr std::array<uint32_t, 256> makeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> table = makeTable();

void addPortably(Streams &streams, const std::byte *at, size_t blocks) {
  for (; blocks; --blocks)
    for (uint32_t &crc : streams)
      for (int i = 0; i < 8; ++i, ++at)
        crc = crc >> 8 ^ table[(crc ^ static_cast<uint32_t>(*at)) & 0xff];
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) void addByInstruction(Streams &streams, const std::byte *at, size_t blocks) {
  uint64_t a = streams[0], b = streams[1], c = streams[2], d = streams[3];
  for (; blocks; --blocks, at += 32) {
    uint64_t words[4];
    std::memcpy(words, at, sizeof words);
    a = __builtin_ia32_crc32di(a, words[0]);
    b = __builtin_ia32_crc32di(b, words[1]);
    c = __builtin_ia32_crc32di(c, words[2]);
    d = __builtin_ia32_crc32di(d, words[3]);
  }
  streams = {static_cast<uint32_t>(a), static_cast<uint32_t>(b), static_cast<uint32_t>(c), static_cast<uint32_t>(d)};
}
bool hasInstruction() { return __builtin_cpu_supports("sse4.2"); }
#else
constexpr auto addByInstruction = addPortably;
bool hasInstruction() { return false; }
#endif

} // namespace

Checksum::Checksum(bool portable) : addBlocks(!portable && hasInstruction() ? addByInstruction : addPortably) {}

void Checksum::add(std::span<const std::byte> bytes) {
  size_t held = total % blockBytes;
  total += bytes.size();
  if (held) {
    size_t more = std::min(blockBytes - held, bytes.size());
    std::memcpy(rest.data() + held, bytes.data(), more);
    bytes = bytes.subspan(more);
    if (held + more < blockBytes)
      return;
    addBlocks(streams, rest.data(), 1);
  }
  size_t blocks = bytes.size() / blockBytes;
  addBlocks(streams, bytes.data(), blocks);
  bytes = bytes.subspan(blocks * blockBytes);
  if (!bytes.empty())
    std::memcpy(rest.data(), bytes.data(), bytes.size());
}

std::string Checksum::digest() const {
  // Zeros fill up the last block; the number of bytes, in a block of its own, tells them from zeros of the content.
  Streams last = streams;
  std::array<std::byte, blockBytes> block = {};
  if (size_t held = total % blockBytes) {
    std::memcpy(block.data(), rest.data(), held);
    addBlocks(last, block.data(), 1);
  }
  block = {};
  std::memcpy(block.data(), &total, sizeof total);
  addBlocks(last, block.data(), 1);
  char text[33];
  snprintf(text, sizeof text, "%08x%08x%08x%08x", ~last[0], ~last[1], ~last[2], ~last[3]);
  return text;
}

std::string checksumOf(std::span<const std::byte> bytes) {
  Checksum checksum;
  checksum.add(bytes);
  return checksum.digest();
}

} // namespace par::core
