#include "Diagnostics.h"

#include "par/Import/Provenance.h"

#include "mlir/IR/Location.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace par {

PhaseDiagnostics::PhaseDiagnostics(MLIRContext *context, StringRef model, llvm::raw_ostream &err)
    : model(model.str()), err(err),
      handler(context, [this](Diagnostic &diagnostic) { return print(diagnostic); }) {}

/// Shows a line of a file with a caret, if the file can be read.
static void showLine(FileLineColLoc place, llvm::raw_ostream &os) {
  auto buffer = llvm::MemoryBuffer::getFile(place.getFilename().getValue());
  if (!buffer || place.getLine() == 0)
    return;
  SmallVector<StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  if (place.getLine() > lines.size() || place.getColumn() == 0)
    return;
  os << lines[place.getLine() - 1].rtrim('\r') << "\n";
  os.indent(place.getColumn() - 1) << "^\n";
}

void PhaseDiagnostics::printError(Location location, StringRef severity, StringRef message) {
  if (std::optional<Provenance> from = getProvenance(location)) {
    err << model << ": " << severity << ": ";
    if (!from->node.empty())
      err << "node \"" << from->node << "\": ";
    err << message << "\n";
    if (std::string where = describe(*from); !where.empty())
      err << "  note: from " << where << "\n";
    return;
  }
  auto place = location->findInstanceOf<FileLineColLoc>();
  if (!place) {
    err << model << ": " << severity << ": " << message << "\n";
    return;
  }
  err << place.getFilename().getValue();
  if (place.getLine() > 0)
    err << ":" << place.getLine() << ":" << place.getColumn();
  err << ": " << severity << ": " << message << "\n";
  if (place.getLine() > 0 && place.getFilename() != model)
    showLine(place, err);
}

LogicalResult PhaseDiagnostics::print(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
    return success();
  bool warning = diagnostic.getSeverity() == DiagnosticSeverity::Warning;
  printError(diagnostic.getLocation(), warning ? "warning" : "error", diagnostic.str());
  for (Diagnostic &note : diagnostic.getNotes()) {
    std::string text = note.str();
    err << "  note: " << text;
    if (std::optional<Provenance> from = getProvenance(note.getLocation()))
      if (std::string where = describe(*from); !where.empty() && !StringRef(text).contains(where))
        err << " (" << where << ")";
    err << "\n";
  }
  return success();
}

} // namespace par
