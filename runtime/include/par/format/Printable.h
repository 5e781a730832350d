// What comes from outside and is printed: a terminal must not take it for commands, nor a log for another line.
#pragma once

#include <algorithm>
#include <string>

namespace par::format {

/// Zeros, line ends, escapes and their like.
inline bool isControl(unsigned char byte) { return byte < ' ' || byte == 127; }

/// The text with a `?` for each control character.
inline std::string printable(std::string text) {
  std::replace_if(text.begin(), text.end(), isControl, '?');
  return text;
}

} // namespace par::format
