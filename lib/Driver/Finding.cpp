#include "par/Driver/Finding.h"
#include "par/format/Printable.h"

using namespace llvm;

namespace par {

/// Texts hold names of a model, of any length and with any characters; IR of an op has lines.
static std::string inLines(const std::string &text) {
  constexpr size_t most = 8000;
  return format::printable(format::shortened(text, most, most), "\n");
}

void Finding::print(raw_ostream &os, StringRef tool) const {
  // A name of a file may hold what a terminal takes for commands.
  os << (file.empty() ? tool.str() : format::printable(file));
  if (line > 0)
    os << ":" << line << ":" << column;
  os << ": " << (warning ? "warning" : "error") << ": " << inLines(message) << "\n" << format::printable(shown, "\n\t");
  for (const std::string &note : notes)
    os << "  note: " << inLines(note) << "\n";
}

} // namespace par
