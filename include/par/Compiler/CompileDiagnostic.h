// One error or warning of a compilation, as a value.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>
#include <vector>

namespace par {

/// One error or warning with its place; `printDiagnostic` (Report) prints it in the form of docs/plan.md §5.
struct CompileDiagnostic {
  bool warning = false;
  bool internal = false;         ///< an invariant of Par's own broke: no fault of the input
  std::string file;              ///< a plan, the model, the bundle or "--set K=V"; empty: the call itself is wrong
  unsigned line = 0, column = 0; ///< from 1; 0: no line of the file is meant
  std::string message;
  std::string shown; ///< the line and a caret below the column, each with its newline; empty: nothing to show
  std::vector<std::string> notes;
};

/// Receives findings in order.
using DiagnosticSink = llvm::function_ref<void(const CompileDiagnostic &)>;

} // namespace par
