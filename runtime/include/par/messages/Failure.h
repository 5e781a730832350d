// The runtime's exception: place, sentence, notes and the exit code of plan.md section 5.
#pragma once

#include "par/format/Printable.h"
#include "par/messages/Messages.h"

#include <exception>
#include <sstream>
#include <string>
#include <vector>

namespace par::core {

/// Exit codes of par-run.
enum ExitCode : int { exitError = 1, exitUsage = 2, exitRefused = 3, exitDeadRank = 4, exitNan = 5 };

/// Replaces each `{}` of the text by the next value.
template <typename... Values>
std::string format(std::string_view text, const Values &...values) {
  std::ostringstream out;
  [[maybe_unused]] auto upTo = [&] {
    size_t at = text.find("{}");
    out << text.substr(0, at);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 2);
  };
  ((upTo(), out << values), ...);
  out << text;
  return out.str();
}

/// Longer than any path.
inline constexpr size_t maxShown = 4200;

/// A value as it stands in a message: texts come from files, of any length, and a terminal must not take them
/// for commands.
template <typename Value>
auto shown(const Value &value) {
  if constexpr (std::is_convertible_v<const Value &, std::string_view>)
    return par::format::excerpt(par::format::printable(std::string(std::string_view(value))), maxShown);
  else
    return value;
}

/// "1,204,224": for byte counts in messages.
std::string grouped(uint64_t number);

/// Names or descriptions in a message: `"x", "y" and 9 more`; of more than 16 the first ones.
class NameList {
public:
  void add(const std::string &name) {
    if (count++ < most)
      text += (text.empty() ? "" : ", ") + par::format::excerpt(name, 120);
  }
  bool empty() const { return count == 0; }
  std::string str() const { return count > most ? format("{} and {} more", text, count - most) : text; }

private:
  static constexpr size_t most = 16;
  std::string text;
  size_t count = 0;
};

class Failure : public std::exception {
public:
  template <typename... Values>
  static Failure at(std::string place, Message message, const Values &...values) {
    return Failure(std::move(place), format(textOf(message), shown(values)...));
  }
  Failure(std::string place, std::string sentence, int code = exitError) : code(code) {
    text = shown(place) + (place.empty() ? "error: " : ": error: ") + sentence;
  }
  /// A text that is already formatted: par-verify's.
  static Failure verbatim(std::string text, int code) {
    Failure failure("", "", code);
    failure.text = std::move(text);
    return failure;
  }
  Failure &&note(const std::string &sentence) && {
    text += "\n  note: " + sentence;
    return std::move(*this);
  }
  /// Goes on with the sentence: "; ckpt/100 is complete".
  Failure &&continued(const std::string &more) && {
    text += more;
    return std::move(*this);
  }
  Failure &&exitsWith(int newCode) && {
    code = newCode;
    return std::move(*this);
  }
  /// "PLACE: error: SENTENCE\n  note: ..."
  const char *what() const noexcept override { return text.c_str(); }
  int exitCode() const { return code; }

private:
  std::string text;
  int code;
};

} // namespace par::core
