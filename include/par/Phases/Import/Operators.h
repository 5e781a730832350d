// The operators of ONNX's own domain, and their support.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace par {

/// Why an operator cannot be supported, "" if it could: `the shape of its output depends on data`.
llvm::StringRef refusalOf(llvm::StringRef opType);

/// Number of inputs or outputs of a node; no `most` if the last one may be repeated.
struct CountRange {
  size_t least = 0;
  std::optional<size_t> most;
};

/// The inputs and outputs of an operator of ai.onnx; trailing ones beyond `least` may be left out.
struct Arity {
  CountRange inputs, outputs;
};

/// Nothing for an op that ai.onnx does not have in this opset.
std::optional<Arity> arityOf(llvm::StringRef opType, int64_t opset);

/// A Markdown table of operators: the first opset, whether it is supported, its limits, or why it is refused. Import's
/// own tables decide what is supported.
std::string operatorsPage();

} // namespace par
