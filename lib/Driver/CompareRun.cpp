// par-compile --what-if and --compare: two compilations without machine code, of which the second goes on from the
// first one's import, and their facts side by side.
#include "CompareRun.h"

#include "par/Compiler/Trial.h"
#include "par/Report/Difference.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace par {

std::string checkCompareFlags(const CompileOptions &options) {
  if (options.compare && !options.whatIf.empty())
    return "--compare takes two plans and --what-if one; leave out one of them";
  if (options.compare && options.plans.size() != 2)
    return "--compare takes two plans, found " + std::to_string(options.plans.size());
  if (options.compare && options.searches)
    return "--compare takes two plans as they are; leave out --auto, or compare what it wrote (--write-plan)";
  return "";
}

namespace {

/// Reports findings of a compilation, those of a setting under the flag that gave it.
class Observer : public CompileObserver {
public:
  Observer(const CompileOptions &options, DiagnosticSink sink) : options(options), sink(sink) {}
  void found(const CompileDiagnostic &finding) override {
    CompileDiagnostic said = finding;
    for (const std::string &setting : options.whatIf)
      if (finding.file == "--set " + setting)
        said.file = "--what-if " + setting;
    if (StringRef message(said.message);
        StringRef(said.file).starts_with("--what-if") && message.consume_front("--set "))
      said.message = "--what-if " + message.str();
    sink(said);
  }

private:
  const CompileOptions &options;
  DiagnosticSink sink;
};

} // namespace

/// Whether a plan leaves a choice to Par that a trial does not make.
static bool leavesChoice(const Plan &plan) {
  return plan.collectives.choosesBucket || *plan.meshOrder.kind == PlanMeshOrder::Auto;
}

namespace {

/// Compiles plans of one model, and keeps the facts that a comparison is about.
class Comparison {
public:
  Comparison(const std::shared_ptr<const Model> &model, const CompileOptions &options, DiagnosticSink sink)
      : model(model), observer(options, sink) {
    compiler.cache = options.cache;
  }

  /// Returns the exit code.
  int add(const PlanText &text, Facts &facts);

private:
  bool predict(const Compiled &compiled, Facts &facts);

  const std::shared_ptr<const Model> &model;
  Observer observer;
  CompilerOptions compiler;
  std::optional<Compiled> first; ///< a trial, which later ones go on from
};

} // namespace

bool Comparison::predict(const Compiled &compiled, Facts &facts) {
  const PlannedModel &planned = compiled.planned;
  Expected<Simulation> simulation = simulate(*compiled.bundle, planned.entry(), planned.hardware.onThisHost());
  if (simulation) {
    facts.prediction = describePrediction(planned.plan.plan, *compiled.bundle, *simulation);
    return true;
  }
  CompileDiagnostic finding;
  finding.file = planned.graph->path;
  finding.message = toString(simulation.takeError());
  observer.found(finding);
  return false;
}

int Comparison::add(const PlanText &text, Facts &facts) {
  std::optional<PlannedModel> planned =
      planModel(model, text, {}, [&](const CompileDiagnostic &finding) { observer.found(finding); });
  if (!planned)
    return WrongInput;
  facts.keys = listKeys(planned->plan); // before choices are made, as the user sees them
  bool isTrial = !leavesChoice(planned->plan.plan);
  bool sameGraph = first && first->planned.graph->bytes == planned->graph->bytes;
  Compiled compiled = isTrial ? compileTrial(std::move(*planned), observer, sameGraph ? &*first : nullptr)
                              : compile(std::move(*planned), compiler, observer);
  if (!compiled.bundle)
    return any_of(compiled.findings, [](const CompileDiagnostic &finding) { return finding.internal; }) ? Bug
                                                                                                        : WrongInput;
  const PlannedModel &made = compiled.planned;
  facts.memory = {made.memoryLimit(), measureMemory(*compiled.bundle)};
  facts.communications = findCommunications(*compiled.bundle, made.entry(), made.plan, made.hardware);
  if (!predict(compiled, facts))
    return Bug;
  if (isTrial && !first)
    first.emplace(std::move(compiled));
  return Done;
}

int comparePlans(const CompileOptions &options, raw_ostream &out, DiagnosticSink sink) {
  std::shared_ptr<const Model> model = readModel(options.model, sink);
  if (!model)
    return WrongInput;
  PlanText first{options.plans, options.settings, options.plugins}, second = first;
  std::string firstName = "as it is", secondName = join(options.whatIf, ", ");
  if (options.compare) {
    first.files = {options.plans.front()};
    second.files = {options.plans.back()};
    firstName = sys::path::filename(options.plans.front()).str();
    secondName = sys::path::filename(options.plans.back()).str();
  }
  second.settings.insert(second.settings.end(), options.whatIf.begin(), options.whatIf.end());
  Comparison comparison(model, options, sink);
  Facts left, right;
  if (int code = comparison.add(first, left))
    return code;
  if (int code = comparison.add(second, right))
    return code;
  printDifference({firstName, left}, {secondName, right, options.compare ? "--set" : "--what-if"}, out);
  return Done;
}

} // namespace par
