// The report of a fault of Par itself.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <atomic>
#include <string>

namespace par {

/// The state of a compilation, for the report of a fault. A signal handler reads it: names are string literals, and the
/// reproducer of a phase is complete before `phase` names that phase.
struct CompileState {
  std::atomic<const char *> phase{"the command line"};
  std::string command;        ///< as it was typed, for the reproducer
  std::string reproducerFile; ///< --emit-reproducer; empty: none is made
  std::string reproducer;     ///< its text as of the phase that runs

  /// `internal error in PHASE: REASON; please report with --emit-reproducer`, or with the file's name if there is one.
  std::string sentence(llvm::StringRef reason) const;
  /// Writes the reproducer, if one was asked for; false if it cannot be written.
  bool writeReproducer() const;
};

/// After this call, a signal that means a fault (SIGSEGV, SIGABRT, ...) and LLVM's fatal errors end the process with
/// that sentence and exit code 70, without a stack dump. Out of memory ends it with the memory in use and exit code 1.
/// Only for a program's main: signals belong to the process.
void catchFaults(const char *tool, const CompileState &compileState);

/// The exit code of a tool that would end with `code`. If its output could not be written (a full disk), it reports
/// that and returns 1 in place of 0; otherwise LLVM's stream would end the process with a fatal error when it is
/// destroyed.
int endOutput(llvm::StringRef tool, int code);

} // namespace par
