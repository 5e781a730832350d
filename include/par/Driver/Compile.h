// par-compile as a function: what its flags ask for.
#pragma once

#include "par/Compiler/CompileDiagnostic.h"
#include "par/Driver/Fault.h"
#include "par/Driver/Flags.h"
#include "par/Plugin/Plugin.h"

#include <optional>

namespace par {

/// The flags of par-compile.
struct CompileOptions {
  std::string model;                 ///< .onnx or .onnx.gz
  std::vector<std::string> plans;    ///< left to right
  std::vector<std::string> settings; ///< KEY=VALUE of --set, -n and --target, left to right
  Plugins plugins;                   ///< of --load-plugin
  std::vector<std::string> also;     ///< settings of --also: each makes a member of the bundle's family
  int64_t ranks = 0;                 ///< of -n; 0: not given
  bool fit = false;                  ///< --fit: search, say what is found, and stop
  bool searches = false;             ///< --auto: complete the plan by a search, then compile it
  bool alternatives = false;         ///< and print the plans around the best one
  std::string gpus;                  ///< of --fit: "8xh100-sxm"
  std::string writePlan;             ///< of --auto, or of onnxSharding: the file that gets the plan
  std::vector<std::string> whatIf;   ///< settings of --what-if: print what they change, and stop
  bool compare = false;              ///< print in what the two plans differ, and stop
  std::string output;                ///< bundle folder; empty: model name + ".par"
  bool printPlan = false;            ///< print the completed plan and stop
  std::optional<std::string> list;   ///< print names and stop: "" is all kinds
  std::string stopAfter;             ///< phase after which the IR is printed and nothing more done
  bool checkDevices = false;         ///< check the model's multi-device annotations, say what is found, and stop
  std::string explain;               ///< what to explain: a word of `explainWords` or a name of the model; and stop,
                                     ///< unless `check`
  bool checkPhases = false;          ///< interpret the program before and after every phase and compare
  bool checkKernels = false;         ///< run each generated kernel on random operands and compare with the interpreter
  bool sayCheckedKernels = true;     ///< and print how many there are
  bool check = false;                ///< all but writing the bundle
  bool emitTrace = false;            ///< print the simulated step as a Perfetto trace and stop
  std::string runTrace;              ///< of emitTrace: a file of par-run --trace, whose events are in it too
  bool open = false;                 ///< the caller opens the report of the bundle: one must be written
  bool emitReport = false;           ///< print the report as a page and stop
  bool emitOnnx = false;             ///< write the model with annotations of the plan to `output` and stop
  bool emitKernels = false;          ///< print what each generated kernel takes of a GPU and stop
  bool hostCode = false;             ///< compile kernels, whatever device they were formed for, for this host
  std::string cache;                 ///< folder that keeps kernels' code between compilations; empty: none does
  bool timing = false;               ///< print the time of every phase
  bool json = false;                 ///< print all facts as JSON in place of the summary
  bool withWeights = false;          ///< a copy of the model's weights goes into the bundle
  bool quiet = false, verbose = false;
  bool werror = false; ///< a compilation with warnings writes no bundle and fails
  /// Whether it prints one thing in place of the summary, and writes no bundle.
  bool emits() const { return emitTrace || emitReport || emitKernels || emitOnnx; }
  /// The configuration of devices whose annotations in the model are plan; "": the only one.
  std::optional<std::string> onnxSharding;
  CompileState *compileState = nullptr; ///< is told of the progress; null: not wanted
};

/// Runs par-compile. Results go to `out`, errors and warnings to `sink` as they are found, and all facts as JSON
/// (docs/report.md) to `report`, unless it is null. Returns the exit code. Keeps nothing between calls: several threads
/// may compile at once.
int runCompiler(const CompileOptions &options, llvm::raw_ostream &out, DiagnosticSink sink,
                std::string *report = nullptr);

/// The folder that is written: `output`, or the model's name + ".par" in the working directory.
std::string bundleFolder(const CompileOptions &options);

} // namespace par
