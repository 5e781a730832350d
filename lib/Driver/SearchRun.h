// par-compile --fit and --auto.
#pragma once

#include "par/Driver/Compile.h"

namespace par {

/// --fit: says whether the model fits so many devices, and how; writes nothing. Returns the exit code: `CannotBe` where
/// no plan fits.
int fitModel(const CompileOptions &options, llvm::raw_ostream &out, DiagnosticSink sink);

/// --auto: settings that complete the user's plan, after the lines of the search; writes the plan of --write-plan.
/// Returns the exit code.
int completeBySearch(const CompileOptions &options, llvm::raw_ostream &out, DiagnosticSink sink,
                     std::vector<std::string> &settings);

/// Why the flags of a search go together or with no others; empty: they do.
std::string checkSearchFlags(const CompileOptions &options);

} // namespace par
