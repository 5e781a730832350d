#include "RandomRows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace par::core {

using format::DType;

namespace {

/// The limits repeat after their last run; an unknown one is taken for 1, index 0.
class Indices {
public:
  explicit Indices(const format::Input &input) : limits(input.limits) {}
  /// The next element's.
  uint64_t next(std::mt19937_64 &random) {
    if (limits.empty())
      return 0;
    const format::Limits &run = limits[at];
    if (++used >= run.count)
      at = (at + 1) % limits.size(), used = 0;
    return run.limit > 0 ? random() % static_cast<uint64_t>(run.limit) : 0;
  }

private:
  const std::vector<format::Limits> &limits;
  size_t at = 0;
  uint64_t used = 0;
};

bool isFloat(DType type) {
  return type == DType::F32 || type == DType::F64 || type == DType::F16 || type == DType::BF16;
}

std::vector<std::byte> valuesOf(const format::Input &input, uint64_t elements, uint64_t seed) {
  uint64_t each = format::sizeOf(input.type);
  std::vector<std::byte> bytes(elements * each);
  if (isFloat(input.type)) {
    fillRandomly(bytes, seed);
    return bytes;
  }
  std::mt19937_64 random(seed);
  Indices indices(input);
  for (uint64_t i = 0; i < elements; ++i) {
    uint64_t value = indices.next(random); // little-endian: the low bytes are the number in every width
    std::memcpy(bytes.data() + i * each, &value, each);
  }
  return bytes;
}

uint64_t elementsOf(std::span<const int64_t> shape) {
  return static_cast<uint64_t>(std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()));
}

} // namespace

void fillRandomly(std::span<std::byte> bytes, uint64_t seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::uniform_real_distribution<float> number(-0.05f, 0.05f);
  size_t at = 0;
  for (; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float value = number(random);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(), std::byte(0));
}

const std::byte *RandomRows::row(const format::Input &input, uint64_t row, std::vector<std::byte> &scratch) const {
  scratch = valuesOf(input, elementsOf(std::span(input.shape).subspan(1)), row + 1);
  return scratch.data();
}

const std::byte *RandomRows::whole(const format::Input &input) const {
  auto [found, isNew] = wholes.try_emplace(input.name);
  if (isNew)
    found->second = valuesOf(input, elementsOf(input.shape), 1);
  return found->second.data();
}

} // namespace par::core
