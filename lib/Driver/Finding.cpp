#include "par/Driver/Finding.h"

using namespace llvm;

namespace par {

void Finding::print(raw_ostream &os, StringRef tool) const {
  os << (file.empty() ? tool : StringRef(file));
  if (line > 0)
    os << ":" << line << ":" << column;
  os << ": " << (warning ? "warning" : "error") << ": " << message << "\n" << shown;
  for (const std::string &note : notes)
    os << "  note: " << note << "\n";
}

} // namespace par
