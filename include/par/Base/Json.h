// JSON that users give: LLVM's parser calls itself for each level of nesting, and a deep text would end the process.
#pragma once

#include "llvm/Support/JSON.h"

namespace par {

/// As llvm::json::parse; an error for arrays and objects nested deeper than `maxJsonDepth`.
constexpr size_t maxJsonDepth = 128;
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

} // namespace par
