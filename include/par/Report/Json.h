#pragma once

#include "par/Compiler/CompileDiagnostic.h"
#include "par/Inspect/Facts.h"

namespace par {

/// Version of the schema of docs/report.md. It rises if a key changes its meaning or is removed, not if one is added.
inline constexpr int reportVersion = 1;

/// How a run of par-compile ended.
struct RunOutcome {
  int code = 0;
  std::string bundle; ///< the folder that was written; empty: none was
  std::vector<CompileDiagnostic> findings;
};

/// All facts as one JSON object, with a line end.
std::string reportAsJson(const Facts &facts, const RunOutcome &outcome);
/// Two plans of one model, each with its facts; nothing where a plan was not compiled.
std::string comparisonAsJson(const Facts *before, const Facts *after, const RunOutcome &outcome);

} // namespace par
