#pragma once

#include "par/Plan/Language/Pattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace par {

/// layers.*.attn.weight for that of each layer.
inline std::string inAnyLayer(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef, 8> parts = splitName(name);
  for (llvm::StringRef &part : parts)
    part = llvm::all_of(part, llvm::isDigit) ? "*" : part;
  return llvm::join(parts, ".");
}

} // namespace par
