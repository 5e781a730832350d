// Makes text from outside safe to print: a terminal must not take it for commands, nor a log for another line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace par::format {

/// Zeros, line ends, escapes and their like.
inline bool isControl(unsigned char byte) { return byte < ' ' || byte == 127; }

/// The text with a `?` for each control character but those of `kept`. U+0080 to U+009F, two bytes of UTF-8, are
/// commands to some terminals, too.
inline std::string printable(std::string text, std::string_view kept = "") {
  auto isHidden = [&](char c) {
    return isControl(static_cast<unsigned char>(c)) && kept.find(c) == std::string_view::npos;
  };
  std::replace_if(text.begin(), text.end(), isHidden, '?');
  for (size_t at = 0; (at = text.find('\xc2', at)) != std::string::npos; ++at)
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xa0)
      text.replace(at, 2, "?");
  return text;
}

/// `at`, or the begin of the character of UTF-8 that it would cut.
inline size_t characterAt(std::string_view text, size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80)
    --at;
  return at;
}

/// The text, or the begin of one of more than `most` bytes and how long it is: a message may quote whatever a file
/// holds.
inline std::string shortened(std::string_view text, size_t most, size_t shown) {
  if (text.size() <= most)
    return std::string(text);
  return std::string(text.substr(0, characterAt(text, shown))) + "... (" + std::to_string(text.size()) + " bytes)";
}

/// A text as a message quotes it: of a long one only its begin and its length.
inline std::string excerpt(const std::string &text, size_t most = 1000) { return shortened(text, most, most); }

/// A shape in an error: "[16x32]". If it has more dims than any model, the first ones and their number.
inline std::string listOf(std::span<const int64_t> shape, std::string_view between) {
  constexpr size_t shown = 16;
  std::string text = "[";
  for (size_t i = 0; i < std::min(shape.size(), shown); ++i)
    text += (i ? std::string(between) : "") + std::to_string(shape[i]);
  return text + (shape.size() > shown ? ", ... (" + std::to_string(shape.size()) + " dims)]" : "]");
}

} // namespace par::format
