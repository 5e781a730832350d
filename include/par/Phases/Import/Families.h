// Tables of functions by the names of ONNX's operators, joined from one table a family.
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ErrorHandling.h"

#include <initializer_list>

namespace par {

/// The rows of all families. An operator in two families ends the process with its name, since one would hide the
/// other.
template <typename Function>
llvm::StringMap<Function> joinFamilies(std::initializer_list<void (*)(llvm::StringMap<Function> &)> families) {
  llvm::StringMap<Function> all;
  for (auto *add : families) {
    llvm::StringMap<Function> family;
    add(family);
    for (auto &row : family)
      if (!all.try_emplace(row.getKey(), row.getValue()).second)
        llvm::reportFatalInternalError("operator " + row.getKey() + " is registered twice");
  }
  return all;
}

} // namespace par
