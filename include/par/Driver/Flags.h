// The command line of a tool as a table.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace par {

/// One flag of docs/plan.md §3. LLVM's own command line library is not used: it brings the hundreds of
/// options that libLLVM registers, and ends with status 1 where Par promises 2.
struct Flag {
  enum Takes {
    Nothing, ///< --flag
    Value,   ///< --flag=V or --flag V
    Maybe    ///< --flag or --flag=V
  };
  const char *name; ///< "--set", "-o"
  Takes takes;
  bool supported; ///< false: refused as "not supported yet"
  const char *value, *doc;
  bool repeats = false; ///< whether it may be given several times; another that takes a value means one thing
};

/// The exit codes of every tool.
enum ExitCode { Done = 0, WrongInput = 1, WrongCommand = 2, CannotBe = 3, RankDied = 4, NumbersFailed = 5, Bug = 70 };

/// A command line taken apart.
struct Arguments {
  struct Given {
    std::string flag, value;
  };
  std::vector<Given> flags;
  std::vector<std::string> positional;

  bool has(llvm::StringRef flag) const;
  /// The last value of a flag, or `fallback`.
  std::string last(llvm::StringRef flag, llvm::StringRef fallback = "") const;
  std::vector<std::string> all(llvm::StringRef flag) const;
};

/// Parses `argv` by the table. Prints errors to `err` and returns false; the exit code then is 2.
bool parseArguments(int argc, const char *const *argv, llvm::ArrayRef<Flag> table, Arguments &arguments,
                    llvm::raw_ostream &err);

/// --help: usage, then the supported flags.
void printHelp(llvm::raw_ostream &os, llvm::StringRef usage, llvm::ArrayRef<Flag> table);

} // namespace par
