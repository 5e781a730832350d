// par-compile --what-if and --compare.
#pragma once

#include "par/Driver/Compile.h"

namespace par {

/// Compiles the plan without and with the settings of --what-if, or the two plans of --compare, and prints what
/// differs, or gives the facts of both as JSON in `report` unless it is null; writes nothing. Returns the exit code: a
/// plan above its memory limit is a result, not an error.
int comparePlans(const CompileOptions &options, llvm::raw_ostream &out, DiagnosticSink sink, std::string *report);

/// Why the flags of a comparison go together with no others; empty: they do.
std::string checkCompareFlags(const CompileOptions &options);

} // namespace par
