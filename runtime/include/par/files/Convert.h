// Values of one type as those of another: of weights and samples whose files have other types than the
// bundle.
#pragma once

#include "par/format/Program.h"

#include <cstddef>
#include <cstdint>

namespace par::core {

using format::DType;

bool isFloat(DType type);
bool isInteger(DType type);

/// Element `i` of integers, or of truth values, which are 0 or 1.
int64_t integerAt(DType type, const std::byte *data, uint64_t i);

double floatAt(DType type, const std::byte *data, uint64_t i);

/// Whether each value of `from` is one of `to`, and means the same: integers and floats of more bits, and truth values
/// as any numbers. (Integers do not convert to floats: a model seldom takes pixels from 0 to 255.)
bool widens(DType from, DType to);
/// For types that widen.
void widen(DType from, const std::byte *data, DType to, std::byte *result, uint64_t count);

/// Whether weights of one type stand for those of the other: equal types, and any two of f64, f32, bf16 and f16.
bool isConvertible(DType from, DType to);
/// Writes elements in such a type, floats rounded to nearest, ties to even. Neither side need be aligned; equal types
/// are copied. Returns the index of the first finite float that is out of range; `count` if there is none.
int64_t convertElements(std::byte *to, DType toType, const std::byte *from, DType fromType, int64_t count);

} // namespace par::core
