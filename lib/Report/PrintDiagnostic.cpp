#include "par/Report/PrintDiagnostic.h"

#include "par/format/Printable.h"

using namespace llvm;

namespace par {

/// Texts hold names of a model, of any length and with any characters; IR of an op has lines.
static std::string inLines(const std::string &text) {
  constexpr size_t most = 8000;
  return format::printable(format::shortened(text, most, most), "\n");
}

void printDiagnostic(const CompileDiagnostic &finding, raw_ostream &os, StringRef tool) {
  // A file's name may contain control characters of a terminal.
  os << (finding.file.empty() ? tool.str() : format::printable(finding.file));
  if (finding.line > 0)
    os << ":" << finding.line << ":" << finding.column;
  os << ": ";
  os.changeColor(finding.warning ? raw_ostream::MAGENTA : raw_ostream::RED, /*Bold=*/true); // where colours are on
  os << (finding.warning ? "warning" : "error") << ":";
  os.resetColor();
  os << " " << inLines(finding.message) << "\n" << format::printable(finding.shown, "\n\t");
  for (const std::string &note : finding.notes)
    os << "  note: " << inLines(note) << "\n";
}

} // namespace par
