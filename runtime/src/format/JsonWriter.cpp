// Plain writing of JSON.
#include "Json.h"

#include <charconv>
#include <cmath>

using namespace par::format;

Writer &Writer::comma() {
  size_t last = out.find_last_not_of('\n');
  if (last != std::string::npos && out[last] != '{' && out[last] != '[')
    out.insert(last + 1, ",");
  return *this;
}

Writer &Writer::key(Word name) { return comma().text(name).raw(":"); }

Writer &Writer::text(Word value) {
  out += '"';
  for (char c : value) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < ' ')
      (((out += "\\u00") += "01"[c >> 4 & 1]) += "0123456789abcdef"[c & 15]);
    else
      out += c;
  }
  out += '"';
  return *this;
}

Writer &Writer::number(int64_t value) { return raw(std::to_string(value)); }

Writer &Writer::real(double value) {
  if (std::isnan(value))
    return text("nan");
  if (std::isinf(value))
    return text(value > 0 ? "inf" : "-inf");
  if (value == 0 && std::signbit(value))
    return raw("-0.0"); // "-0" would read back as the integer 0
  char digits[40];
  auto [end, error] = std::to_chars(digits, digits + sizeof digits, value); // shortest that reads back the same
  return raw(Word(digits, size_t(end - digits)));
}

Writer &Writer::boolean(bool value) { return raw(value ? "true" : "false"); }

Writer &Writer::texts(const std::vector<std::string> &values) {
  raw("[");
  for (size_t i = 0; i < values.size(); ++i)
    (i ? raw(",") : *this).text(values[i]);
  return raw("]");
}
