// Copies between blocks of dense row-major arrays, and fills of initial values. A random value depends on the tensor,
// the element's position in the whole and the seed only, so any sharding starts alike.
#include "par/files/Rectangles.h"

#include "par/files/Random.h"
#include "par/files/Safetensors.h"
#include "par/kernels/LowPrecision.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>

namespace par::core {
namespace {

std::vector<int64_t> stridesOf(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

/// Calls visit(index) for each index of the dims of `size` but the last `inner`.
template <typename Visit>
void forEachOuter(std::span<const int64_t> size, size_t inner, Visit visit) {
  for (int64_t extent : size)
    if (extent == 0)
      return;
  std::vector<int64_t> index(size.size() - inner, 0);
  while (true) {
    visit(std::span<const int64_t>(index));
    size_t d = index.size();
    while (d > 0 && ++index[d - 1] == size[d - 1])
      index[--d] = 0;
    if (d == 0)
      return;
  }
}

} // namespace

void forEachRun(std::span<const int64_t> toShape, std::span<const int64_t> toStart, std::span<const int64_t> fromShape,
                std::span<const int64_t> fromStart, std::span<const int64_t> size,
                const std::function<void(int64_t, int64_t, int64_t)> &visit) {
  // Trailing dims that are whole in both arrays are one run of memory, together with one dim before them.
  size_t inner = 0;
  int64_t run = 1;
  for (size_t d = size.size(); d-- > 0;) {
    run *= size[d];
    ++inner;
    if (size[d] != toShape[d] || size[d] != fromShape[d])
      break;
  }
  auto toStrides = stridesOf(toShape), fromStrides = stridesOf(fromShape);
  int64_t toBase = 0, fromBase = 0;
  for (size_t d = 0; d < size.size(); ++d) {
    toBase += toStart[d] * toStrides[d];
    fromBase += fromStart[d] * fromStrides[d];
  }
  forEachOuter(size, inner, [&](std::span<const int64_t> index) {
    int64_t toAt = toBase, fromAt = fromBase;
    for (size_t d = 0; d < index.size(); ++d) {
      toAt += index[d] * toStrides[d];
      fromAt += index[d] * fromStrides[d];
    }
    visit(toAt, fromAt, run);
  });
}

void copyBlock(std::byte *to, std::span<const int64_t> toShape, std::span<const int64_t> toStart, const std::byte *from,
               std::span<const int64_t> fromShape, std::span<const int64_t> fromStart, std::span<const int64_t> size,
               uint64_t elementBytes) {
  forEachRun(toShape, toStart, fromShape, fromStart, size, [&](int64_t toAt, int64_t fromAt, int64_t run) {
    std::memcpy(to + static_cast<uint64_t>(toAt) * elementBytes, from + static_cast<uint64_t>(fromAt) * elementBytes,
                static_cast<uint64_t>(run) * elementBytes);
  });
}

bool intersect(std::span<const int64_t> startA, std::span<const int64_t> sizeA, std::span<const int64_t> startB,
               std::span<const int64_t> sizeB, std::vector<int64_t> &start, std::vector<int64_t> &size) {
  start.clear();
  size.clear();
  for (size_t d = 0; d < startA.size(); ++d) {
    int64_t begin = std::max(startA[d], startB[d]);
    int64_t end = std::min(startA[d] + sizeA[d], startB[d] + sizeB[d]);
    if (begin >= end)
      return false;
    start.push_back(begin);
    size.push_back(end - begin);
  }
  return true;
}

namespace {

void store(std::byte *to, format::DType type, int64_t at, double value) {
  switch (type) {
  case format::DType::F32:
    reinterpret_cast<float *>(to)[at] = static_cast<float>(value);
    break;
  case format::DType::BF16:
    reinterpret_cast<uint16_t *>(to)[at] = kernels::toBF16(static_cast<float>(value));
    break;
  case format::DType::F16:
    reinterpret_cast<uint16_t *>(to)[at] = kernels::toF16(static_cast<float>(value));
    break;
  case format::DType::F64:
    reinterpret_cast<double *>(to)[at] = value;
    break;
  case format::DType::I64:
    reinterpret_cast<int64_t *>(to)[at] = static_cast<int64_t>(value);
    break;
  case format::DType::I32:
    reinterpret_cast<int32_t *>(to)[at] = static_cast<int32_t>(value);
    break;
  case format::DType::I1:
  case format::DType::U8:
    reinterpret_cast<uint8_t *>(to)[at] = static_cast<uint8_t>(value);
    break;
  default:
    throw Failure::at("", Message::notYet, "initial values of type " + std::string(format::toString(type)));
  }
}

double valueOf(const format::InitRule &rule, uint64_t element, uint32_t stream, uint64_t seed) {
  switch (rule.kind) {
  case format::InitRule::Normal:
    return rule.a + rule.b * randomNormal(seed, element, stream, 0);
  case format::InitRule::Uniform:
    return rule.a + (rule.b - rule.a) * randomUniform(seed, element, stream, 0);
  default:
    return rule.a;
  }
}

/// Elements from `begin` to `end` of the part, counted row by row.
struct Filling {
  std::byte *to;
  format::DType type;
  const format::InitRule &rule;
  std::span<const int64_t> start, size, localStrides, globalStrides;
  uint32_t stream;
  uint64_t seed;

  void fill(int64_t begin, int64_t end) const {
    int64_t row = size.empty() ? 1 : size.back();
    for (int64_t at = begin; at < end;) {
      int64_t local = 0, global = 0, rest = at;
      for (size_t d = size.size(); d-- > 0; rest /= size[d]) {
        local += rest % size[d] * localStrides[d];
        global += (start[d] + rest % size[d]) * globalStrides[d];
      }
      // The rest of a row is contiguous in both arrays.
      int64_t count = std::min(end - at, row - at % row);
      for (int64_t i = 0; i < count; ++i)
        store(to, type, local + i, valueOf(rule, static_cast<uint64_t>(global + i), stream, seed));
      at += count;
    }
  }
};

} // namespace

void initialize(std::byte *to, format::DType type, const format::Layout &layout, const format::Rectangle &part,
                const format::InitRule &rule, const std::string &name, uint64_t seed) {
  std::memset(to, 0, static_cast<uint64_t>(elementCount(layout.local)) * format::sizeOf(type));
  if (rule.kind == format::InitRule::Constant && rule.a == 0)
    return;
  std::vector<int64_t> localStrides = stridesOf(layout.local), globalStrides = stridesOf(layout.shape);
  alignas(double) std::byte first[sizeof(double)];
  store(first, type, 0, 0); // throws here for types that have no initial values, not in a thread
  Filling filling{to, type, rule, part.start, part.size, localStrides, globalStrides, randomStream(name), seed};
  constexpr int64_t least = 1 << 15, most = 16; // elements of a thread: about a millisecond; threads
  int64_t count = elementCount(part.size), threads = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, most);
  int64_t share = std::max(least, (count + threads - 1) / threads);
  std::vector<std::thread> others;
  int64_t next = std::min(count, share);
  try {
    for (; next < count; next += share)
      others.emplace_back([&filling, begin = next, end = std::min(count, next + share)] { filling.fill(begin, end); });
  } catch (const std::system_error &) { // no more threads: the rest is done here
  }
  filling.fill(0, std::min(count, share));
  filling.fill(std::min(count, next), count);
  for (std::thread &other : others)
    other.join();
}

} // namespace par::core
