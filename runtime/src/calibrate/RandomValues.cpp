#include "RandomValues.h"

#include <algorithm>
#include <cstring>

namespace par::calibrate {

using format::DType;

void fillRandomly(std::span<std::byte> bytes, std::mt19937_64 &random) {
  std::uniform_real_distribution<float> number(-0.05f, 0.05f);
  size_t at = 0;
  for (; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float value = number(random);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(), std::byte(0));
}

/// The smallest limit of all elements: any index below it is valid everywhere. An unknown one is taken for 1, index 0.
static uint64_t smallestLimit(const format::Input &input) {
  int64_t least = input.limits.empty() ? 1 : input.limits.front().limit;
  for (const format::Limits &run : input.limits)
    least = std::min(least, run.limit);
  return static_cast<uint64_t>(std::max<int64_t>(1, least));
}

void RandomHost::feed(const format::Input &input, int64_t, std::span<std::byte> to) {
  DType type = input.type;
  if (type == DType::F32 || type == DType::F64 || type == DType::F16 || type == DType::BF16)
    return fillRandomly(to, random);
  uint64_t limit = smallestLimit(input), each = format::sizeOf(type);
  for (size_t at = 0; at + each <= to.size(); at += each) {
    uint64_t value = random() % limit; // little-endian: the low bytes are the number in every width
    std::memcpy(to.data() + at, &value, each);
  }
}

} // namespace par::calibrate
