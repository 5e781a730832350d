#pragma once

#include "par/Phases/Import/StaticTensor.h"

#include "llvm/ADT/StringRef.h"

#include <map>

namespace par {

/// The arrays of a safetensors file by name; nothing and the reason if it is broken or holds a type that is not
/// supported. Every length is checked against the file before it is used.
std::optional<std::map<std::string, StaticTensor>> readArrays(llvm::StringRef file, std::string &reason);

} // namespace par
