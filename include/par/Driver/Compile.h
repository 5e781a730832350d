// From a model and a plan to a bundle.
#pragma once

#include "par/Driver/Fault.h"
#include "par/Driver/Finding.h"
#include "par/Driver/Flags.h"

#include <optional>

namespace par {

/// What par-compile was asked for.
struct CompileOptions {
  std::string model;                 ///< .onnx or .onnx.gz
  std::vector<std::string> plans;    ///< left to right
  std::vector<std::string> settings; ///< KEY=VALUE of --set, -n and --target, left to right
  std::string output;                ///< bundle folder; empty: model name + ".par"
  bool printPlan = false;            ///< print the completed plan and stop
  std::optional<std::string> list;   ///< print names and stop: "" is all kinds
  std::string stopAfter;             ///< phase after which the IR is printed and nothing more done
  std::string explain; ///< "collectives": every communication and what forced it; "memory": what is saved; and stop
  bool checkPhases = false;      ///< interpret the program before and after every phase and compare
  bool checkKernels = false;     ///< run each generated kernel on random operands and compare with the interpreter
  bool sayCheckedKernels = true; ///< and print how many there are
  bool check = false;            ///< all but writing the bundle
  bool emitTrace = false;        ///< print the simulated step as a Perfetto trace and stop
  bool emitKernels = false;      ///< print what each generated kernel takes of a GPU and stop
  bool hostCode = false;         ///< compile kernels, whatever device they were formed for, for this host
  std::string cache;             ///< folder that keeps kernels' code between compilations; empty: none does
  bool timing = false;           ///< print the time of every phase
  bool quiet = false, verbose = false;
  Whereabouts *whereabouts = nullptr; ///< is told how far it is; null: nobody asks
};

/// Runs par-compile. Results go to `out`, errors and warnings to `sink` as they are found. Returns the exit
/// code.
/// Keeps nothing between calls: several threads may compile at once.
int compile(const CompileOptions &options, llvm::raw_ostream &out, FindingSink sink);

/// The folder that is written: `output`, or the model's name + ".par" in the working directory.
std::string bundleFolder(const CompileOptions &options);

/// Names of the phases in their order, for --stop-after.
llvm::ArrayRef<llvm::StringRef> phaseNames();

} // namespace par
