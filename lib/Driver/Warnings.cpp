#include "Warnings.h"

using namespace llvm;

namespace par {

bool mayWarn(const CompileOptions &options, ArrayRef<CompileDiagnostic> findings, DiagnosticSink sink) {
  auto warnings = count_if(findings, [](const CompileDiagnostic &finding) { return finding.warning; });
  if (!options.werror || warnings == 0)
    return true;
  CompileDiagnostic wrong;
  wrong.file = options.model;
  wrong.message =
      (Twine(warnings) + (warnings == 1 ? " warning is an error" : " warnings are errors") + " (--werror)").str();
  sink(wrong);
  return false;
}

} // namespace par
