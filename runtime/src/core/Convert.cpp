#include "par/core/Convert.h"

#include "par/kernels/Narrow.h"

#include <cstring>

namespace par::core {

using format::DType;

namespace {

bool isFloat(DType type) { return type == DType::F32 || type == DType::F64 || type == DType::BF16 || type == DType::F16; }

struct BF16 {
  uint16_t bits;
  double number() const { return kernels::fromBF16(bits); }
  static BF16 of(double number) { return {kernels::toBF16(static_cast<float>(number))}; }
};
struct F16 {
  uint16_t bits;
  double number() const { return kernels::fromF16(bits); }
  static F16 of(double number) { return {kernels::toF16(static_cast<float>(number))}; }
};
struct F32 {
  float bits;
  double number() const { return bits; }
  static F32 of(double number) { return {static_cast<float>(number)}; }
};
struct F64 {
  double bits;
  double number() const { return bits; }
  static F64 of(double number) { return {number}; }
};

/// What lies in a file need not be aligned.
template <class To, class From>
void convert(std::byte *to, const std::byte *from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From element;
    std::memcpy(&element, from + static_cast<size_t>(i) * sizeof(From), sizeof(From));
    To converted = To::of(element.number());
    std::memcpy(to + static_cast<size_t>(i) * sizeof(To), &converted, sizeof(To));
  }
}

template <class To>
void convertFrom(DType fromType, std::byte *to, const std::byte *from, int64_t count) {
  switch (fromType) {
  case DType::BF16:
    return convert<To, BF16>(to, from, count);
  case DType::F16:
    return convert<To, F16>(to, from, count);
  case DType::F64:
    return convert<To, F64>(to, from, count);
  default:
    return convert<To, F32>(to, from, count);
  }
}

} // namespace

bool isConvertible(DType from, DType to) { return from == to || (isFloat(from) && isFloat(to)); }

void convertElements(std::byte *to, DType toType, const std::byte *from, DType fromType, int64_t count) {
  if (toType == fromType) {
    std::memcpy(to, from, static_cast<size_t>(count) * format::sizeOf(toType));
    return;
  }
  switch (toType) {
  case DType::BF16:
    return convertFrom<BF16>(fromType, to, from, count);
  case DType::F16:
    return convertFrom<F16>(fromType, to, from, count);
  case DType::F64:
    return convertFrom<F64>(fromType, to, from, count);
  default:
    return convertFrom<F32>(fromType, to, from, count);
  }
}

} // namespace par::core
