// Colours of errors and warnings on standard error.
#include "par/format/Colors.h"

#include <cstdlib>
#include <unistd.h>
#include <utility>

static constexpr const char *variable = "PAR_COLOR";

void par::format::setColors(std::string_view when) {
  if (when == "always" || (when == "auto" && isatty(STDERR_FILENO) && !std::getenv("NO_COLOR")))
    setenv(variable, "1", /*overwrite=*/1);
  else
    unsetenv(variable);
}

std::string par::format::colored(std::string line) {
  const char *said = std::getenv(variable);
  if (!said || std::string_view(said) != "1")
    return line;
  // The first of the word that is there: a message may quote it again.
  for (auto [word, color] : {std::pair<std::string, const char *>("error:", "31"), {"warning:", "35"}}) {
    size_t at = line.starts_with(word + " ") ? 0 : line.find(": " + word + " ");
    if (at == line.npos)
      continue;
    at += at ? 2 : 0;
    return line.replace(at, word.size(), "\x1b[0;1;" + std::string(color) + "m" + word + "\x1b[0m");
  }
  return line;
}
