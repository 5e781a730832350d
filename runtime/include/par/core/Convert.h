// Weights of one format of floats, wanted in another: a module in bf16 whose masters are f32, and back.
#pragma once

#include "par/format/Program.h"

#include <cstddef>
#include <cstdint>

namespace par::core {

/// Whether weights of one type stand for those of the other: equal types, and any two of f64, f32, bf16 and f16.
bool isConvertible(format::DType from, format::DType to);

/// Writes `count` elements in another format, rounded to nearest, ties to even. Neither side need be aligned; equal types
/// are copied.
void convertElements(std::byte *to, format::DType toType, const std::byte *from, format::DType fromType, int64_t count);

} // namespace par::core
