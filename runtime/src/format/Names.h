// The words of the format, one table an enumeration.
#pragma once

#include "par/format/Manifest.h"

#include <array>
#include <optional>
#include <string_view>

namespace par::format {

using Word = std::string_view;

/// Names<E>::words[i] is the word of the value i of E.
template <typename E>
struct Names;
#define PAR_NAMES(E, ...)                                                                                              \
  template <>                                                                                                          \
  struct Names<E> {                                                                                                    \
    static constexpr Word words[] = {__VA_ARGS__};                                                                     \
  }
PAR_NAMES(DType, "f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "i1", "u64", "u32", "u16");
PAR_NAMES(Space, "dev", "host");
PAR_NAMES(BufferKind, "state", "temp", "input", "hyper");
PAR_NAMES(Index, "none", "mb", "ver");
PAR_NAMES(Access, "r", "w", "rw", "acc");
PAR_NAMES(Op, "kernel", "call", "coll", "send", "recv", "group", "copy", "fill", "signal", "wait", "feed", "fetch");
PAR_NAMES(CollKind, "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce");
PAR_NAMES(Reduction, "sum", "max", "min", "prod");
PAR_NAMES(Epilogue, "none", "gelu", "gelu_aux", "gelu_grad", "sum_a", "sum_b");
PAR_NAMES(TensorKind, "parameter", "state", "copy", "buffer", "counter", "frozen", "constant");
PAR_NAMES(InitRule::Kind, "constant", "normal", "uniform");
PAR_NAMES(LrSchedule::Decay, "constant", "linear", "cosine", "rsqrt", "step", "one_cycle");
PAR_NAMES(TextFeed::Mode, "unknown", "next", "same");
#undef PAR_NAMES

template <typename E>
Word nameOf(E value) {
  size_t i = size_t(value);
  return i < std::size(Names<E>::words) ? Names<E>::words[i] : Word("?");
}

template <typename E>
std::optional<E> valueOf(Word word) {
  for (size_t i = 0; i < std::size(Names<E>::words); ++i)
    if (Names<E>::words[i] == word)
      return E(i);
  return std::nullopt;
}

/// "@mb-1", "@3", or "" if the expression is the default of an operand of a buffer so indexed.
std::string slotText(const SlotExpr &slot, Index index);
/// The reverse, from the text after the name ("" or what begins with '@'); nullopt if it is not a slot
/// expression.
std::optional<SlotExpr> parseSlot(std::string_view text, Index index);

} // namespace par::format
