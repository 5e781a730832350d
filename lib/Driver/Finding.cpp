#include "par/Driver/Finding.h"
#include "par/format/Printable.h"

using namespace llvm;

namespace par {

/// Texts hold names of a model; IR of an op has lines.
static std::string inLines(const std::string &text) { return format::printable(text, "\n"); }

void Finding::print(raw_ostream &os, StringRef tool) const {
  // A name of a file may hold what a terminal takes for commands.
  os << (file.empty() ? tool.str() : format::printable(file));
  if (line > 0)
    os << ":" << line << ":" << column;
  os << ": " << (warning ? "warning" : "error") << ": " << inLines(message) << "\n" << shown;
  for (const std::string &note : notes)
    os << "  note: " << inLines(note) << "\n";
}

} // namespace par
