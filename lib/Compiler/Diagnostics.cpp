#include "par/Compiler/Diagnostics.h"

#include "par/Base/Provenance.h"
#include "par/Plan/Language/Errors.h"
#include "par/format/PlainFile.h"

#include "mlir/IR/Location.h"

using namespace mlir;

namespace par {

PhaseDiagnostics::PhaseDiagnostics(MLIRContext *context, StringRef model, DiagnosticSink sink)
    : model(model.str()), sink(sink), handler(context, [this](Diagnostic &diagnostic) { return handOn(diagnostic); }) {}

/// A line of a file with a caret, if the file can be read.
static std::string showLine(FileLineColLoc place) {
  auto text = format::readPlainFile(place.getFilename().getValue().str());
  if (!text || place.getLine() == 0)
    return "";
  SmallVector<StringRef> lines;
  StringRef(*text).split(lines, '\n');
  if (place.getLine() > lines.size() || place.getColumn() == 0)
    return "";
  return showColumn(lines[place.getLine() - 1].rtrim('\r'), place.getColumn());
}

CompileDiagnostic PhaseDiagnostics::locate(Location location, StringRef message) {
  CompileDiagnostic finding;
  finding.file = model;
  finding.message = message.str();
  if (std::optional<Provenance> from = getProvenance(location)) {
    if (!from->node.empty())
      finding.message = ("node \"" + from->node + "\": " + message).str();
    if (std::string where = describe(*from); !where.empty())
      finding.notes.push_back("from " + where);
    return finding;
  }
  auto place = location->findInstanceOf<FileLineColLoc>();
  if (!place)
    return finding;
  finding.file = place.getFilename().getValue().str();
  finding.line = place.getLine();
  finding.column = place.getLine() > 0 ? place.getColumn() : 0;
  if (finding.file != model)
    finding.shown = showLine(place);
  return finding;
}

/// Whether the message comes from a verifier or a gate: errors about the input name ONNX nodes and lines of the plan,
/// never ops.
static bool isInternal(StringRef message) {
  return (message.starts_with("'") && message.contains("' op ")) || message.contains("does not dominate this use") ||
         message.starts_with("null operand found");
}

LogicalResult PhaseDiagnostics::handOn(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
    return success();
  CompileDiagnostic finding = locate(diagnostic.getLocation(), diagnostic.str());
  finding.warning = diagnostic.getSeverity() == DiagnosticSeverity::Warning;
  finding.internal = !finding.warning && isInternal(diagnostic.str());
  for (Diagnostic &note : diagnostic.getNotes()) {
    std::string text = note.str();
    if (std::optional<Provenance> from = getProvenance(note.getLocation()))
      if (std::string where = describe(*from); !where.empty() && !StringRef(text).contains(where))
        text += " (" + where + ")";
    finding.notes.push_back(std::move(text));
  }
  sink(finding);
  return success();
}

} // namespace par
