#include "par/Driver/Finding.h"
#include "par/format/Printable.h"

using namespace llvm;

namespace par {

/// As it stands, but for what a terminal takes for commands: texts hold names of a model. IR of an op has lines.
static std::string inLines(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c != '\n' && format::isControl(static_cast<unsigned char>(c)); }, '?');
  return text;
}

void Finding::print(raw_ostream &os, StringRef tool) const {
  os << (file.empty() ? tool : StringRef(file));
  if (line > 0)
    os << ":" << line << ":" << column;
  os << ": " << (warning ? "warning" : "error") << ": " << inLines(message) << "\n" << shown;
  for (const std::string &note : notes)
    os << "  note: " << inLines(note) << "\n";
}

} // namespace par
