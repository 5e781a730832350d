// A checksum of file contents: CRC32C (Castagnoli) of four interleaved streams. Word i of 8 bytes goes to stream i mod
// 4, so that the processor's instruction, which takes 3 cycles, is busy in every one: several times as fast as memory
// is copied, and 128 bits. It finds accidents, not intent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace par::core {

class Checksum {
public:
  /// `portable`: without the processor's instruction, as where it has none; the result is the same.
  explicit Checksum(bool portable = false);
  /// Adds bytes; how they are cut into calls does not matter.
  void add(std::span<const std::byte> bytes);
  /// 32 hex digits of all bytes so far and their number.
  std::string digest() const;

private:
  static constexpr size_t blockBytes = 32;
  using AddBlocks = void (*)(std::array<uint32_t, 4> &streams, const std::byte *at, size_t blocks);

  AddBlocks addBlocks;
  std::array<uint32_t, 4> streams = {~0u, ~0u, ~0u, ~0u};
  std::array<std::byte, blockBytes> rest = {}; ///< a block that is not full yet
  uint64_t total = 0;
};

/// The digest of bytes that are all there.
std::string checksumOf(std::span<const std::byte> bytes);

} // namespace par::core
