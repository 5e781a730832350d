// FIPS 180-4.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace par::format {

/// Hash of bytes given in pieces.
class Sha256 {
public:
  /// `plain`: without the processor's instructions for it, of which there may be none anyway.
  explicit Sha256(bool plain = false) : plain(plain) {}
  void update(std::string_view bytes);
  /// 32 bytes. The object is spent afterwards.
  std::string digest();
  /// The same as 64 lower-case hex digits.
  std::string finish();

private:
  void block(const uint8_t *data);
  void blockByWords(const uint8_t *data);
  bool plain;
  std::array<uint32_t, 8> state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending{};
  uint64_t total = 0;
};

/// Two lower-case hex digits for each byte.
std::string toHex(std::string_view bytes);
/// Hash of `bytes`, 64 lower-case hex digits.
std::string sha256(std::string_view bytes);

} // namespace par::format
