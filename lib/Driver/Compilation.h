#pragma once

#include "MakeBundle.h"
#include "Phases.h"
#include "Summary.h"

#include "par/Driver/Compile.h"
#include "par/Interpreter/Interpreter.h"
#include "par/Phases/Import/Import.h"
#include "par/Simulator/Simulator.h"

#include <chrono>
#include <ctime>
#include <functional>

namespace par {

/// One run of par-compile with a model.
class Compilation {
public:
  Compilation(const CompileOptions &options, llvm::raw_ostream &out, FindingSink outside)
      : options(options), out(out), outside(outside), here(options.whereabouts ? *options.whereabouts : own) {}

  int run();

  /// What a rank holds at most of the bundle that this would write, and how long its step is predicted to take.
  struct Measures {
    uint64_t peak = 0;
    int64_t stepNs = 0;
  };
  /// Compiles without a word; nothing where that is not possible.
  std::optional<Measures> measure();

private:
  /// Says what is wrong at `file`; empty: with the call.
  void report(llvm::StringRef file, const llvm::Twine &message) {
    Finding finding;
    finding.file = file.str();
    finding.message = message.str();
    sink(finding);
  }
  /// A finding at the place of a plan's value; at the model where the value was derived.
  Finding findingAt(const Origin &where) const;
  bool readModel();
  void warnOfMissingData();
  void tieParameters(PlanErrors &errors);
  bool readPlanFor();
  bool import();
  bool runPhase(const Phase &phase);
  bool comparePhase(llvm::StringRef name);
  /// Whether --stop-after names this phase; the IR has then been printed.
  bool stopsAfter(llvm::StringRef name);
  void makeContext();
  int runPhases();
  std::optional<Measures> measureBundle(const format::Bundle &bundle);
  /// What the plan could say to need at most `limit` bytes a rank, each compiled so (WaysOut.cpp).
  std::vector<std::string> findWaysOut(const format::Bundle &bundle, uint64_t limit);
  /// What importing would refuse, said beside the plan's mistakes.
  void reportLostParameters();
  std::optional<format::Bundle> makeBundle();
  int checkCode();
  int prove(const format::Bundle &bundle, std::string &line);
  int write(format::Bundle &bundle);
  /// False, and said, where a bundle would be written in the place of what is somebody else's: before the work, not
  /// after it.
  bool mayWrite();
  void reportFolder(llvm::StringRef message);
  bool predict(format::Bundle &bundle);
  bool findHardware();
  /// What a rank may use: the plan's limit, or what the device has.
  std::optional<uint64_t> memoryLimit() const;
  int finish();
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); }
  /// With --timing, says what was taken since the last call.
  void sayTime(llvm::StringRef name);
  llvm::StringRef entry() const { return model.plan.train ? "train" : "predict"; }
  bool quiet() const { return options.quiet || options.emitTrace || options.emitKernels || !options.stopAfter.empty(); }

  /// Hands a finding on, and counts it.
  void take(const Finding &finding);
  /// The exit code after a phase that failed: it has said what is wrong with the input, or Par is at fault.
  int codeOfFailure();
  /// Says which phase begins, and keeps what it begins with if a reproducer is wanted. `name` is a literal.
  void enter(const char *name, const Phase *phase = nullptr);

  const CompileOptions &options;
  llvm::raw_ostream &out;
  FindingSink outside;
  Whereabouts own, &here;
  unsigned errors = 0;
  bool faulty = false;
  std::function<void(const Finding &)> sink = [this](const Finding &finding) { take(finding); };
  std::optional<onnx::Model> onnxModel;
  ModelPlan model;
  ImportOptions importing;
  std::map<std::string, std::vector<format::Source>>
      tiedCopies; ///< where the model's files hold what is another one now
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::optional<interp::PhaseCheck> check;
  StepFacts facts;
  CompiledKernels kernels;
  std::optional<Hardware> hardware;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  double saidSeconds = 0, saidCpu = double(std::clock()) / CLOCKS_PER_SEC;
};

} // namespace par
