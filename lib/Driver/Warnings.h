// par-compile --werror.
#pragma once

#include "par/Driver/Compile.h"

namespace par {

/// False, after an error, if warnings are errors and there are some.
bool mayWarn(const CompileOptions &options, llvm::ArrayRef<CompileDiagnostic> findings, DiagnosticSink sink);

} // namespace par
