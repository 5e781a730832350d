// Patterns over the names of a model.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace par {

/// A pattern of docs/plan.md §1.2. It matches the trailing segments of a dotted name; `^` anchors it at the
/// front;
/// `*` stays within a segment, `**` spans any number of them, `{q,k,v}` and `{0..11}` are alternatives:
///
///     mlp.c_fc.weight          transformer.h.0.mlp.c_fc.weight, transformer.h.1.mlp.c_fc.weight, ...
///     ^wte.weight              wte.weight, but not transformer.wte.weight
///     h.{0..3}.attn            the attention of the first four layers
///     out(ln_1)  in(mlp)[1]    a module's output, its second input
///     grad(P)  state(P)        gradient, optimizer state of parameters P
///     op(Softmax)  op(Gelu in mlp)   nodes by ONNX type
///
/// Node names `transformer.h.0.mlp/Gelu.1` have the node part "/Gelu.1" as their last segment.
class NamePattern {
public:
  enum Form { Name, Out, In, Grad, State, Op };

  /// Parses `text`, a trailing "?" included. On failure returns std::nullopt and sets `why`.
  static std::optional<NamePattern> parse(llvm::StringRef text, std::string &why);

  Form form() const { return patternForm; }
  /// "name?": matching nothing is no error.
  bool optional() const { return mayMatchNothing; }
  /// The index i of in(M)[i]; 0 for in(M).
  unsigned inputIndex() const { return index; }
  /// The type T of op(T in M).
  llvm::StringRef opType() const { return type; }
  /// The pattern as written, without the trailing "?".
  llvm::StringRef text() const { return source; }
  /// The names inside out(), in(), grad(), state() or op(... in ...); the pattern itself for Name.
  llvm::StringRef nameText() const { return inner; }
  /// Minimum number of segments of a matching name.
  size_t segmentCount() const { return segments.size(); }

  /// Whether the name part matches `name`; true for op(T), which has none.
  bool matchesName(llvm::StringRef name) const;
  /// Whether op(T [in M]) matches a node of type `opType` in module `module`: M may be the module or one
  /// around it.
  bool matchesNode(llvm::StringRef opType, llvm::StringRef module) const;

private:
  bool parseInner(llvm::StringRef text, std::string &why);

  Form patternForm = Name;
  bool mayMatchNothing = false, anchored = false;
  unsigned index = 0;
  std::string type, source, inner;
  std::vector<std::string> segments;
};

/// Splits a name at its dots; a node part ("/Gelu.1") is one segment.
llvm::SmallVector<llvm::StringRef, 8> splitName(llvm::StringRef name);

} // namespace par
