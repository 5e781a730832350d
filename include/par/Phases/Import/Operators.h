// The operators of ONNX's own domain, and what becomes of each.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace par {

/// Why an operator cannot be, "" if nothing stands against it: `the shape of its output depends on data`.
llvm::StringRef refusalOf(llvm::StringRef opType);

/// How many a node may have; no `most` where the last one may be repeated.
struct CountRange {
  size_t least = 0;
  std::optional<size_t> most;
};

/// The inputs and outputs of an operator of ai.onnx; trailing ones beyond `least` may be left out.
struct Arity {
  CountRange inputs, outputs;
};

/// Nothing for what ai.onnx does not have in this opset.
std::optional<Arity> arityOf(llvm::StringRef opType, int64_t opset);

/// A table in Markdown: every operator with its first opset, whether it is read, with which limits, or why it is
/// refused. What is read is what Import's tables hold.
std::string operatorsPage();

} // namespace par
