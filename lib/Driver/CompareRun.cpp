// par-compile --what-if and --compare: two compilations without machine code, of which the second goes on from the
// first one's import, and their facts side by side.
#include "CompareRun.h"

#include "Warnings.h"

#include "par/Compiler/Trial.h"
#include "par/Report/Difference.h"
#include "par/Report/Json.h"

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
  if ((options.compare || !options.whatIf.empty()) && !options.output.empty())
    return "--what-if and --compare print one difference and write nothing; leave out -o";
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
  facts.plan = describePlan(planned->plan);
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

namespace {

/// The two plans, what they are called, and their facts as far as they were compiled.
struct PlanPair {
  PlanText first, second;
  std::string firstName = "as it is", secondName;
  std::optional<Facts> before, after;
};

} // namespace

static PlanPair readPair(const CompileOptions &options) {
  PlanPair pair;
  pair.first = {options.plans, options.settings, options.plugins};
  pair.second = pair.first;
  pair.secondName = join(options.whatIf, ", ");
  if (options.compare) {
    pair.first.files = {options.plans.front()};
    pair.second.files = {options.plans.back()};
    pair.firstName = sys::path::filename(options.plans.front()).str();
    pair.secondName = sys::path::filename(options.plans.back()).str();
  }
  pair.second.settings.insert(pair.second.settings.end(), options.whatIf.begin(), options.whatIf.end());
  return pair;
}

/// Compiles both plans; the exit code. `findings`: those that the sink has got.
static int compilePair(const CompileOptions &options, DiagnosticSink sink,
                       const std::vector<CompileDiagnostic> &findings, PlanPair &pair) {
  std::shared_ptr<const Model> model = readModel(options.model, sink);
  if (!model)
    return WrongInput;
  Comparison comparison(model, options, sink);
  for (auto [text, facts] : {std::pair(&pair.first, &pair.before), std::pair(&pair.second, &pair.after)})
    if (int code = comparison.add(*text, facts->emplace())) {
      facts->reset();
      return code;
    }
  return mayWarn(options, findings, sink) ? Done : WrongInput;
}

int comparePlans(const CompileOptions &options, raw_ostream &out, DiagnosticSink sink, std::string *report) {
  std::vector<CompileDiagnostic> findings;
  auto keep = [&](const CompileDiagnostic &finding) {
    findings.push_back(finding);
    sink(finding);
  };
  PlanPair pair = readPair(options);
  int code = compilePair(options, keep, findings, pair);
  if (report)
    *report = comparisonAsJson(pair.before ? &*pair.before : nullptr, pair.after ? &*pair.after : nullptr,
                               {code, "", findings});
  if (code == Done && !options.json)
    printDifference({pair.firstName, *pair.before},
                    {pair.secondName, *pair.after, options.compare ? "--set" : "--what-if"}, out);
  return code;
}

} // namespace par
