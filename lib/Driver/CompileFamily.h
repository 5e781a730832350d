// par-compile --also: bundles of one family.
#pragma once

#include "par/Driver/Compile.h"

namespace par {

/// Compiles the bundle and a member for each --also, proves each, and writes them as one folder. Returns the exit code.
int compileFamily(const CompileOptions &options, llvm::raw_ostream &out, DiagnosticSink sink);

} // namespace par
