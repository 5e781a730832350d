#pragma once

#include "par/Compiler/CompileDiagnostic.h"

#include "llvm/Support/raw_ostream.h"

namespace par {

/// Prints a finding as tools do; `tool` stands for an empty place:
///
///     plan.yaml:6:3: error: unknown key "shedule" in pipeline; did you mean "schedule"?
///       shedule: 1f1b
///       ^
///       note: ...
void printDiagnostic(const CompileDiagnostic &finding, llvm::raw_ostream &os, llvm::StringRef tool);

} // namespace par
