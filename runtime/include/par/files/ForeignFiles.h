// Advice on files of other formats.
#pragma once

#include <string>

namespace par::core {

/// "; python3 -c '...' writes w.safetensors of it", for PyTorch's and numpy's files by their names; "" for
/// others.
std::string waysToConvert(const std::string &path);

} // namespace par::core
