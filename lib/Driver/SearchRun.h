// par-compile --fit and --auto.
#pragma once

#include "par/Driver/Compile.h"
#include "par/Inspect/SearchFacts.h"

namespace par {

/// --fit: says whether the model fits so many devices, and how; writes nothing. Returns the exit code: `CannotBe` where
/// no plan fits. `report` receives the facts as JSON, which take the place of the lines under --json; null: not wanted.
int fitModel(const CompileOptions &options, llvm::raw_ostream &out, DiagnosticSink sink, std::string *report);

/// The outcome of --auto: settings that complete the user's plan, and why.
struct FoundPlan {
  std::vector<std::string> settings;
  SearchFacts facts;
};

/// --auto: prints the lines of the search; writes the plan of --write-plan. Returns the exit code.
int completeBySearch(const CompileOptions &options, llvm::raw_ostream &out, DiagnosticSink sink, FoundPlan &found);

/// Why the flags of a search go together or with no others; empty: they do.
std::string checkSearchFlags(const CompileOptions &options);

} // namespace par
