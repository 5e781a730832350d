// The report of a fault of Par itself.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <atomic>
#include <string>

namespace par {

/// Where a compilation stands, and what is kept of it for a report. A signal handler reads it: names are string
/// literals, and the text of a reproducer is whole before `phase` says that it is that phase's.
struct Whereabouts {
  std::atomic<const char *> phase{"the command line"};
  std::string command;        ///< as it was typed, for the reproducer
  std::string reproducerFile; ///< --emit-reproducer; empty: none is made
  std::string reproducer;     ///< its text as of the phase that runs

  /// `internal error in PHASE: REASON; please report with --emit-reproducer`, or with the file's name where there is
  /// one.
  std::string sentence(llvm::StringRef reason) const;
  /// Writes the reproducer, if one was asked for; false if it cannot be written.
  bool writeReproducer() const;
};

/// From now on a signal that means a fault (SIGSEGV, SIGABRT, ...) and LLVM's fatal errors end the process with that
/// sentence and exit code 70, without a stack dump; where there is no more memory, with one that says how much is in
/// use and code 1. For a program's main alone: signals belong to the process.
void catchFaults(const char *tool, const Whereabouts &whereabouts);

/// The exit code of a tool that would end with `code`: what it printed may not have been written (a full disk), which
/// is said and is code 1 where all else went well. An output that fails is LLVM's fatal error when it is destroyed.
int endOutput(llvm::StringRef tool, int code);

} // namespace par
