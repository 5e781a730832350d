// Arrays as nested lists of JSON.
#pragma once

#include "par/format/Manifest.h"

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace par::serve {

/// The bytes of a nested list, in that type, and its shape. "NaN", "Infinity" and "-Infinity" are floats, too. Throws
/// Failure at the input's name.
std::vector<std::byte> readArray(const nlohmann::json &value, const format::Input &input, std::vector<int64_t> &shape);

/// The reverse: floats have the fewest digits that tell them from others.
void writeArray(std::string &text, format::DType type, std::span<const int64_t> shape,
                std::span<const std::byte> bytes);

} // namespace par::serve
