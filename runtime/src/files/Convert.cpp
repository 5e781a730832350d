// Converts elements between types. A double that is rounded to 16 bits through f32 is first rounded to odd, so that it
// is rounded once; the first finite element that becomes infinite is reported.
#include "par/files/Convert.h"

#include "par/kernels/LowPrecision.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace par::core {

namespace {

template <typename T>
T elementAt(const std::byte *data, uint64_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof value, sizeof value);
  return value;
}

template <typename T>
void put(std::byte *to, uint64_t i, T value) {
  std::memcpy(to + i * sizeof value, &value, sizeof value);
}

/// A float that rounds to fewer bits as the double does: where it is not equal, the neighbour whose last bit
/// is 1.
float roundedToOdd(double value) {
  auto near = static_cast<float>(value);
  if (static_cast<double>(near) == value || !std::isfinite(near))
    return near;
  auto bits = std::bit_cast<uint32_t>(near);
  if (bits % 2 == 0)
    bits += std::fabs(static_cast<double>(near)) > std::fabs(value) ? uint32_t(-1) : 1;
  return std::bit_cast<float>(bits);
}

void putFloat(DType type, std::byte *to, uint64_t i, double value) {
  switch (type) {
  case DType::F64:
    return put(to, i, value);
  case DType::F32:
    return put(to, i, static_cast<float>(value));
  case DType::F16:
    return put(to, i, kernels::toF16(roundedToOdd(value)));
  default:
    return put(to, i, kernels::toBF16(roundedToOdd(value)));
  }
}

void putInteger(DType type, std::byte *to, uint64_t i, int64_t value) {
  switch (format::sizeOf(type)) {
  case 8:
    return put(to, i, value);
  case 4:
    return put(to, i, static_cast<int32_t>(value));
  case 2:
    return put(to, i, static_cast<int16_t>(value));
  default:
    return put(to, i, static_cast<int8_t>(value));
  }
}

bool isSigned(DType type) {
  return type == DType::I64 || type == DType::I32 || type == DType::I16 || type == DType::I8;
}

} // namespace

double floatAt(DType type, const std::byte *data, uint64_t i) {
  switch (type) {
  case DType::F64:
    return elementAt<double>(data, i);
  case DType::F32:
    return elementAt<float>(data, i);
  case DType::F16:
    return kernels::fromF16(elementAt<uint16_t>(data, i));
  default:
    return kernels::fromBF16(elementAt<uint16_t>(data, i));
  }
}

bool isFloat(DType type) {
  return type == DType::F64 || type == DType::F32 || type == DType::F16 || type == DType::BF16;
}

bool isInteger(DType type) { return !isFloat(type) && type != DType::I1; }

int64_t integerAt(DType type, const std::byte *data, uint64_t i) {
  switch (type) {
  case DType::I64:
  case DType::U64:
    return elementAt<int64_t>(data, i);
  case DType::I32:
    return elementAt<int32_t>(data, i);
  case DType::I16:
    return elementAt<int16_t>(data, i);
  case DType::I8:
    return elementAt<int8_t>(data, i);
  case DType::U16:
    return elementAt<uint16_t>(data, i);
  case DType::U32:
    return elementAt<uint32_t>(data, i);
  case DType::I1:
    return elementAt<uint8_t>(data, i) != 0;
  default:
    return elementAt<uint8_t>(data, i);
  }
}

bool widens(DType from, DType to) {
  if (from == DType::I1)
    return to != DType::I1;
  uint64_t bytes = format::sizeOf(from), more = format::sizeOf(to);
  if (isFloat(from) || isFloat(to))
    return isFloat(from) && isFloat(to) && more > bytes;
  return isInteger(to) && more > bytes && (isSigned(to) || !isSigned(from));
}

void widen(DType from, const std::byte *data, DType to, std::byte *result, uint64_t count) {
  if (isFloat(from)) {
    convertElements(result, to, data, from, static_cast<int64_t>(count));
    return;
  }
  for (uint64_t i = 0; i < count; ++i)
    if (isFloat(to))
      putFloat(to, result, i, static_cast<double>(integerAt(from, data, i)));
    else
      putInteger(to, result, i, integerAt(from, data, i));
}

bool isConvertible(DType from, DType to) { return from == to || (isFloat(from) && isFloat(to)); }

int64_t convertElements(std::byte *to, DType toType, const std::byte *from, DType fromType, int64_t count) {
  auto all = static_cast<uint64_t>(count), outside = all;
  if (fromType == toType) {
    std::memcpy(to, from, all * format::sizeOf(toType));
    return count;
  }
  if (fromType == DType::BF16 && toType == DType::F32) { // most models that are shared
    for (uint64_t i = 0; i < all; ++i)
      put(to, i, kernels::fromBF16(elementAt<uint16_t>(from, i)));
    return count;
  }
  for (uint64_t i = 0; i < all; ++i) {
    double value = floatAt(fromType, from, i);
    putFloat(toType, to, i, value);
    if (outside == all && std::isfinite(value) && !std::isfinite(floatAt(toType, to, i)))
      outside = i;
  }
  return static_cast<int64_t>(outside);
}

} // namespace par::core
