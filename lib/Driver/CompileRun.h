// One run of par-compile with a model.
#pragma once

#include "Explanation.h"

#include "par/Compiler/Compiler.h"
#include "par/Driver/Compile.h"
#include "par/Inspect/Facts.h"
#include "par/Interpreter/Interpreter.h"
#include "par/Report/Trace.h"

#include <chrono>
#include <ctime>
#include <functional>

namespace par {

/// Prints the time of each step, on demand.
class StepTimer {
public:
  StepTimer(llvm::raw_ostream &out, bool prints) : out(out), prints(prints) {}

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); }
  /// The time since the last call, or since the timer was made.
  void print(llvm::StringRef step);

private:
  llvm::raw_ostream &out;
  bool prints;
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  double printedSeconds = 0, printedCpu = double(std::clock()) / CLOCKS_PER_SEC;
};

/// A bundle of a family that is being compiled.
struct FamilyPart {
  const Compiled *main;              ///< whose step it must compute; null: it is the main one itself
  std::optional<Compiled> made = {}; ///< with its proof, not written

  /// Reports an error and returns false if the main bundle computes another step than this plan.
  bool hasStep(const PlannedModel &planned, DiagnosticSink sink) const;
  /// Likewise if the main bundle has another state.
  bool hasState(const Compiled &compiled, DiagnosticSink sink) const;
};

/// Values that the call has beside its flags.
struct BesideRun {
  std::optional<SearchFacts> search = {}; ///< of the search that completed the plan
  std::optional<RunTrace> trace = {};     ///< of --run-trace
};

/// Runs the compiler as the flags ask, and observes its progress.
class CompileRun : public CompileObserver {
public:
  /// `report` receives the facts as JSON, `part` the bundle, which then is not written; null: not wanted.
  CompileRun(const CompileOptions &options, llvm::raw_ostream &out, DiagnosticSink outside, std::string *report,
             FamilyPart *part = nullptr, BesideRun beside = {})
      : options(options), out(out), outside(outside), report(report), part(part), beside(std::move(beside)),
        here(options.compileState ? *options.compileState : own), timer(out, options.timing) {}

  /// Returns the exit code; gives `report` its JSON.
  int run();

private:
  int compileModel();
  void found(const CompileDiagnostic &finding) override;
  void begins(const char *step, const Compiled &compiled, const Phase *phase) override;
  bool ended(llvm::StringRef step, const Compiled &compiled) override;

  /// Returns false.
  bool reportError(llvm::StringRef file, const llvm::Twine &message);
  /// Interprets the module on small random inputs; false, after an error, if a result differs from the last phase's.
  bool comparePhase(llvm::StringRef step, mlir::ModuleOp module);
  /// Facts about the plan, and the lines of the summary that say them.
  void summarize(const ModelPlan &model);
  int finish(Compiled &compiled);
  int proveAndWrite(Compiled &compiled);
  /// False, after an error with ways out, if a role needs more than the memory limit.
  bool fits(const Compiled &compiled);
  int checkCode(const Compiled &compiled);
  bool predict(Compiled &compiled);
  int write(Compiled &compiled);
  /// Enters a step that is not the compiler's. `step` is a literal.
  void enter(const char *step, const Plan &plan, mlir::ModuleOp module);

  bool quiet() const {
    return explained.isAlone() || options.quiet || options.json || options.emits() || !options.stopAfter.empty();
  }

  const CompileOptions &options;
  llvm::raw_ostream &out;
  DiagnosticSink outside;
  std::string *report;
  FamilyPart *part;
  BesideRun beside;
  std::function<void(const CompileDiagnostic &)> sink = [this](const CompileDiagnostic &finding) { found(finding); };
  CompileState own, &here;
  bool faulty = false;
  StepTimer timer;
  std::shared_ptr<const Model> model;
  PlanText text;
  std::string devices; ///< the configuration that the plan is taken from
  std::optional<interp::PhaseCheck> check;
  Facts facts;
  std::vector<CompileDiagnostic> findings;
  Explanation explained{options.explain};
  bool written = false;
};

} // namespace par
