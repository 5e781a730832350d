// The names of a model that a plan can write, as text.
#pragma once

#include "par/Plan/Names/NameTable.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace par {

/// One name a line under a heading for each kind; `kind` is `params`, `modules`, `nodes`, `inputs` (with outputs and
/// dims) or "" for all. Nothing if it is none of these.
std::optional<std::string> listNames(const NameTable &names, llvm::StringRef kind);

} // namespace par
