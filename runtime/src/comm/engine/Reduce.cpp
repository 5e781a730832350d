// Elementwise reductions in member order.
#include "Reduce.h"
#include "StreamCopy.h"
#include "par/kernels/LowPrecision.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

using namespace par;
using format::DType;
using format::Reduction;

namespace {

// The stored and the computed form of a type.
template <typename T>
struct Plain {
  using Stored = T;
  using Computed = T;
  static Computed load(Stored x) { return x; }
  static Stored store(Computed x) { return x; }
};

struct BFloat16 {
  using Stored = uint16_t;
  using Computed = float;
  static float load(uint16_t x) { return kernels::fromBF16(x); }
  static uint16_t store(float x) { return kernels::toBF16(x); }
};

struct Float16 {
  using Stored = uint16_t;
  using Computed = float;
  static float load(uint16_t x) { return kernels::fromF16(x); }
  static uint16_t store(float x) { return kernels::toF16(x); }
};

struct Bool {
  using Stored = uint8_t;
  using Computed = uint32_t;
  static uint32_t load(uint8_t x) { return x != 0; }
  static uint8_t store(uint32_t x) { return x != 0; }
};

// Signed overflow wraps, as it does in the interpreter and on every device.
template <typename T>
T wrapping(T a, T b, bool multiply) {
  using U = std::make_unsigned_t<T>;
  if constexpr (sizeof(T) < 4)
    return multiply ? T(int(a) * int(b)) : T(int(a) + int(b));
  else
    return multiply ? T(U(a) * U(b)) : T(U(a) + U(b));
}

template <Reduction reduction, typename T>
T combine(T a, T b) {
  if constexpr (reduction == Reduction::Max)
    return b > a || b != b ? b : a;
  else if constexpr (reduction == Reduction::Min)
    return b < a || b != b ? b : a;
  else if constexpr (std::is_integral_v<T>)
    return wrapping(a, b, reduction == Reduction::Prod);
  else
    return reduction == Reduction::Prod ? a * b : a + b;
}

// Blocks that fit the first-level cache: every source is read once, and a block is read from all sources
// before it is written, so that the result may lie over a source.
template <typename Element, Reduction reduction>
void reduceBlocks(std::byte *out, std::span<const std::byte *const> sources, size_t n) {
  using Stored = typename Element::Stored;
  constexpr size_t block = 1024;
  typename Element::Computed sum[block];
  // A result that overlaps a source is already in the cache.
  bool streams =
      n * sizeof(Stored) >= comm::streamedBytes && std::find(sources.begin(), sources.end(), out) == sources.end();
  for (size_t begin = 0; begin < n; begin += block) {
    size_t m = std::min(block, n - begin);
    auto at = [&](const std::byte *p) { return reinterpret_cast<const Stored *>(p) + begin; };
    const Stored *first = at(sources[0]);
    for (size_t i = 0; i < m; ++i)
      sum[i] = Element::load(first[i]);
    for (const std::byte *source : sources.subspan(1)) {
      const Stored *next = at(source);
      for (size_t i = 0; i < m; ++i)
        sum[i] = combine<reduction>(sum[i], Element::load(next[i]));
    }
    Stored *result = reinterpret_cast<Stored *>(out) + begin, stored[block];
    Stored *to = streams ? stored : result;
    for (size_t i = 0; i < m; ++i)
      to[i] = Element::store(sum[i]);
    if (streams)
      comm::streamCopy(result, stored, m * sizeof(Stored));
  }
}

template <typename Element>
void reduceAs(Reduction reduction, std::byte *out, std::span<const std::byte *const> sources, size_t n) {
  switch (reduction) {
  case Reduction::Sum:
    return reduceBlocks<Element, Reduction::Sum>(out, sources, n);
  case Reduction::Max:
    return reduceBlocks<Element, Reduction::Max>(out, sources, n);
  case Reduction::Min:
    return reduceBlocks<Element, Reduction::Min>(out, sources, n);
  case Reduction::Prod:
    return reduceBlocks<Element, Reduction::Prod>(out, sources, n);
  }
}

} // namespace

void par::comm::reduce(DType type, Reduction reduction, std::byte *out, std::span<const std::byte *const> sources,
                       size_t n) {
  switch (type) {
  case DType::F32:
    return reduceAs<Plain<float>>(reduction, out, sources, n);
  case DType::F64:
    return reduceAs<Plain<double>>(reduction, out, sources, n);
  case DType::F16:
    return reduceAs<Float16>(reduction, out, sources, n);
  case DType::BF16:
    return reduceAs<BFloat16>(reduction, out, sources, n);
  case DType::I64:
    return reduceAs<Plain<int64_t>>(reduction, out, sources, n);
  case DType::I32:
    return reduceAs<Plain<int32_t>>(reduction, out, sources, n);
  case DType::I16:
    return reduceAs<Plain<int16_t>>(reduction, out, sources, n);
  case DType::I8:
    return reduceAs<Plain<int8_t>>(reduction, out, sources, n);
  case DType::U64:
    return reduceAs<Plain<uint64_t>>(reduction, out, sources, n);
  case DType::U32:
    return reduceAs<Plain<uint32_t>>(reduction, out, sources, n);
  case DType::U16:
    return reduceAs<Plain<uint16_t>>(reduction, out, sources, n);
  case DType::U8:
    return reduceAs<Plain<uint8_t>>(reduction, out, sources, n);
  case DType::I1:
    return reduceAs<Bool>(reduction, out, sources, n);
  }
}
