// Arrays as an input takes them: their type, their shape, the range of their integers.
#pragma once

#include "par/files/Safetensors.h"
#include "par/format/Manifest.h"

#include <optional>
#include <string_view>

namespace par::core {

/// An array for messages.
struct ArrayPlace {
  std::string_view file, name;
  std::optional<uint64_t> row; ///< that is looked at; nothing where the input has no rows
};

/// `"x" f32[8, 4], "labels" i64[8]`.
std::string describeInputs(const format::Manifest &manifest);

/// Throws Failure unless elements of `type` become those of the input, and the shape is the input's, of any number of
/// rows.
void checkArray(const format::Input &input, const std::string &name, DType type, std::span<const int64_t> shape,
                const std::string &place);

/// Throws Failure unless the shape is the input's, of any number of rows.
void checkShape(const format::Input &input, const std::string &name, DType type, std::span<const int64_t> shape,
                const std::string &place);

/// " in [0, 128)": the range of all integers of an input, if they share one; else "".
std::string describeRange(const format::Input &input);

/// Throws Failure where an integer is outside of the input's range: as an index it would read other memory. `data`:
/// of the input's type, a row, or the whole where the input has no rows.
void checkRange(const format::Input &input, const ArrayPlace &place, const std::byte *data, uint64_t elements);

} // namespace par::core
