// par-compile --fit and --auto from their flags to a search, and its result as text, plan or settings.
#include "SearchRun.h"

#include "Warnings.h"

#include "par/Inspect/Facts.h"
#include "par/Inspect/Machine.h"
#include "par/Plan/Language/Tree.h"
#include "par/Report/Json.h"
#include "par/Report/Search.h"
#include "par/Report/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>

using namespace llvm;

namespace par {

static constexpr size_t shownAlternatives = 16;

/// "8xh100-sxm" taken apart; nothing where it is none.
static std::optional<std::pair<int64_t, std::string>> readGpus(StringRef text) {
  auto [number, name] = text.split('x');
  int64_t ranks = 0;
  if (name.empty() || number.getAsInteger(10, ranks) || ranks < 1)
    return std::nullopt;
  return std::pair(ranks, name.str());
}

std::string checkSearchFlags(const CompileOptions &options) {
  if (!options.gpus.empty() && !options.fit)
    return "--gpus is for --fit; say -n and --target here";
  if (options.alternatives && !options.fit && !options.searches)
    return "--alternatives is for --fit and --auto; add one of them";
  if (!options.writePlan.empty() && !options.searches && !options.onnxSharding)
    return options.fit ? "--fit writes nothing; in its place say --auto -n N --target T, which --write-plan needs"
                       : "--write-plan writes what --auto finds; add --auto -n N";
  if (options.fit && options.searches)
    return "--fit writes nothing and --auto compiles what it finds; leave out one of them";
  if (options.fit && options.open)
    return "--open opens the report of a bundle, and --fit writes none; leave out one of them";
  if (options.fit && !options.output.empty())
    return "--fit writes nothing; leave out -o, or say --auto -n N --target T in its place";
  if (!options.fit && !options.searches)
    return "";
  auto gpus = readGpus(options.gpus);
  if (options.fit && !options.gpus.empty() && !gpus)
    return "--gpus takes NUMBERxHARDWARE, as 8xh100-sxm, found \"" + options.gpus + "\"";
  if (options.fit && options.gpus.empty() && options.ranks < 1)
    return "--fit needs the devices: --gpus=8xh100-sxm, or -n and --target";
  constexpr int64_t maxRanks = 1 << 15; // as a plan has
  if (int64_t ranks = std::max(options.ranks, gpus ? gpus->first : 0); ranks > maxRanks)
    return "a search is for at most " + std::to_string(maxRanks) + " ranks, found " + std::to_string(ranks);
  bool saysTarget = any_of(options.settings, [](StringRef setting) { return setting.starts_with("target="); });
  if (options.fit && gpus && (options.ranks || saysTarget))
    return "--gpus says the number and the target; leave out -n and --target";
  if (options.searches && options.ranks < 1)
    return "--auto needs the number of ranks: -n N";
  if ((options.fit || options.searches) && !options.also.empty())
    return "--also compiles bundles of one family, which a search does not; leave it out, or write the plan first";
  return "";
}

static bool isScalarFloat(const NameTable::Value &value) {
  bool isFloat = StringRef(value.type).starts_with("f") || value.type == "bf16";
  return isFloat && all_of(value.shape, [](const std::string &dim) { return dim == "1"; });
}

static bool saysTrain(const CompileOptions &options) {
  return any_of(options.settings, [](StringRef setting) { return setting.starts_with("train"); });
}

/// The user's plan with what --fit assumes where it does not say: training of a model that computes its loss.
static PlanText textOf(const CompileOptions &options, const Model &model) {
  PlanText text{options.plans, options.settings, options.plugins};
  text.settings.push_back("ranks=null"); // the call says it, and profiles are of fewer
  if (!options.fit)
    return text;
  if (auto gpus = readGpus(options.gpus))
    text.settings.insert(text.settings.begin(), "target=" + gpus->second);
  PlanErrors reported; // the search reports them again
  PlanLayers layers(reported);
  for (const std::string &file : text.files)
    layers.addFile(file);
  for (const std::string &setting : text.settings)
    layers.addSet(setting);
  if (!layers.tree().at("train") && !saysTrain(options) && any_of(model.names.outputs, isScalarFloat))
    text.settings.push_back("train={}");
  return text;
}

/// A finding about the target that --gpus stands for, by that flag.
static CompileDiagnostic nameGpus(const CompileOptions &options, CompileDiagnostic finding) {
  auto gpus = readGpus(options.gpus);
  if (!gpus || finding.file != "--set target=" + gpus->second)
    return finding;
  finding.file = "--gpus " + options.gpus;
  if (StringRef message = finding.message; message.consume_front("target takes "))
    finding.message = "after the number --gpus takes " + message.str();
  return finding;
}

/// "needs 12.3 GiB"; an estimate within the limit was too low, as stages of layers that differ in size.
static std::string describeNeed(const SearchedPlan &plan, uint64_t limit) {
  std::string bytes = humanBytes(double(plan.known().peak));
  if (plan.played || uint64_t(plan.known().peak) > limit)
    return "needs " + bytes;
  return "is estimated to need " + bytes + ", and does not fit when it is compiled";
}

/// The search of either flag for the model of its file, with its errors. Nothing after one, of which `code` is the exit
/// code.
static std::optional<SearchResult> search(const CompileOptions &options, DiagnosticSink sink, int &code) {
  code = WrongInput;
  std::shared_ptr<const Model> model = readModel(options.model, sink);
  if (!model)
    return std::nullopt;
  SearchOptions searching;
  auto gpus = readGpus(options.gpus);
  searching.ranks = gpus ? gpus->first : options.ranks;
  searching.findsFewest = options.fit;
  if (options.fit) {
    searching.compiles = 1;
    searching.tolerance = 30;
  }
  auto named = [&](const CompileDiagnostic &finding) { sink(nameGpus(options, finding)); };
  std::optional<SearchResult> result = searchPlans(model, textOf(options, *model), searching, named);
  if (!result || !result->plans.empty())
    return result;
  CompileDiagnostic finding;
  finding.file = options.model;
  std::string ranks = formatv("{0} rank{1}", searching.ranks, searching.ranks == 1 ? "" : "s");
  if (!result->leanest || !result->limit) {
    finding.message = "no plan for " + ranks + " compiles: " +
                      (result->reason.empty() ? "no mesh of so many has a dp that divides the samples of a step, a pp "
                                                "for the layers and a tp that divides their widths; ask for another "
                                                "number of ranks, or another batch"
                                              : result->reason);
    sink(finding);
    return std::nullopt;
  }
  code = CannotBe;
  const SearchedPlan &leanest = *result->leanest;
  finding.message = formatv("no plan for {0} fits {1} a rank: {2} {3}", ranks, humanBytes(double(*result->limit)),
                            describeCandidate(leanest.candidate), describeNeed(leanest, *result->limit));
  std::string less = leanest.candidate.offloads ? "more ranks, or precision: bf16 take less"
                                                : "more ranks, precision: bf16, or offload: [states] take less";
  finding.notes.push_back(result->fewest ? formatv("{0} ranks fit: {1}", result->fewest->ranks,
                                                   describeCandidate(result->fewest->plan.candidate))
                                         : less);
  sink(finding);
  return std::nullopt;
}

/// Tokens of a sample of a model that reads them: the second dim of its first input of two dims of integers.
static std::optional<int64_t> tokensOf(const ModelPlan &model) {
  for (const NameTable::Value &input : model.names.inputs) {
    int64_t length = 0;
    if (input.type != "i64" || input.shape.size() != 2)
      continue;
    for (const auto &[symbol, size] : model.plan.dims)
      if (symbol == input.shape[1])
        length = *size;
    if (length || !StringRef(input.shape[1]).getAsInteger(10, length))
      return length;
    break;
  }
  return std::nullopt;
}

/// The part that takes most of the step, beside the memory that is left.
static std::string describeLimit(const Prediction &prediction, int64_t launches, uint64_t peak,
                                 std::optional<uint64_t> limit) {
  std::pair<int64_t, const char *> parts[] = {{prediction.computePermille - launches, "compute"},
                                              {launches, "launch overhead"},
                                              {prediction.bubblePermille, "waiting for other ranks"},
                                              {prediction.communicationPermille, "exposed communication"}};
  auto most = *max_element(parts, [](auto &one, auto &other) { return one.first < other.first; });
  std::string text = formatv("{0}, {1} % of the step", most.second, (most.first + 5) / 10);
  if (limit)
    text += formatv("; memory is {0} % full", 100 * peak / std::max<uint64_t>(1, *limit));
  return text;
}

static FitFacts describeFit(const Compiled &compiled, const Simulation &simulation, const Facts &facts) {
  const ModelPlan &model = compiled.planned.plan;
  FitFacts fit;
  fit.machine = describeMachine(compiled.planned.hardware, facts.plan->ranks, facts.memory->limit);
  int64_t stepNs = facts.prediction->stepNs;
  fit.samplesPerSecond = 1e9 * double(**model.plan.batch.size) / double(std::max<int64_t>(1, stepNs));
  if (std::optional<int64_t> tokens = tokensOf(model))
    fit.tokensPerSecond = fit.samplesPerSecond * double(*tokens);
  uint64_t peak = 0;
  for (const RoleMemory &role : facts.memory->roles)
    peak = std::max(peak, role.peak);
  fit.limitedBy = describeLimit(*facts.prediction, launchPermille(simulation, compiled.planned.hardware), peak,
                                facts.memory->limit);
  return fit;
}

/// The step as this machine would play it: of ranks with devices of their own, as the search has played it. Nothing
/// after an error.
static std::optional<Simulation> playHere(const SearchResult &result, DiagnosticSink sink) {
  const PlannedModel &planned = result.best->planned;
  if (planned.hardware.cores == 0)
    return result.simulation;
  Expected<Simulation> simulation = simulate(*result.best->bundle, planned.entry(), planned.hardware.onThisHost());
  if (simulation)
    return std::move(*simulation);
  CompileDiagnostic finding;
  finding.file = planned.graph->path;
  finding.message = toString(simulation.takeError());
  sink(finding);
  return std::nullopt;
}

/// Facts that only a report has: some grow with ranks and instructions.
static void describeWhole(const SearchResult &result, const Simulation &simulation, Facts &facts) {
  const Compiled &best = *result.best;
  const PlannedModel &planned = best.planned;
  facts.module = describeModule(planned.plan);
  facts.keys = listKeys(planned.plan);
  facts.communications = findCommunications(*best.bundle, planned.entry(), planned.plan, planned.hardware);
  facts.recompute = describeRecompute(best);
  facts.timeline = describeTimeline(*best.bundle, planned.entry(), simulation);
}

/// The facts of the best plan, those of a report if `all`. False after an error.
static bool describe(const SearchResult &result, bool all, Facts &facts, DiagnosticSink sink) {
  std::optional<Simulation> simulation = playHere(result, sink);
  if (!simulation)
    return false;
  const Compiled &best = *result.best;
  const PlannedModel &planned = best.planned;
  const format::Bundle &bundle = *best.bundle;
  facts.model = describeModel(planned.plan);
  facts.plan = describePlan(planned.plan);
  facts.search = describeSearch(result, shownAlternatives);
  facts.memory = {result.limit, measureMemory(bundle)};
  facts.prediction = describePrediction(planned.plan.plan, bundle, *simulation);
  facts.utilization = describeUtilization(best, facts.prediction->stepNs);
  facts.memoryOverTime = describeMemoryOverTime(bundle, planned.entry(), *simulation);
  facts.fit = describeFit(best, *simulation, facts);
  if (all)
    describeWhole(result, *simulation, facts);
  return true;
}

/// That a model without a loss is not trained, if the call says nothing about it.
static void noteInference(const CompileOptions &options, const SearchResult &result, raw_ostream &out) {
  if (!result.space.trains && options.plans.empty() && !saysTrain(options))
    out << "note    the model computes no loss, and nothing says train: this is inference; --set "
           "train.loss=cross_entropy (docs/plan.md 1.3) trains it\n";
}

static void printFit(const CompileOptions &options, const SearchResult &result, const Facts &facts, raw_ostream &out) {
  printModel(*facts.model, result.space.trains, out);
  out << "machine " << facts.fit->machine << "\n";
  printPlan(*facts.plan, out);
  noteInference(options, result, out);
  printAssumed(result, out);
  out << "fits    yes\n";
  printFewest(result, out);
  printSearch(result, out);
  printMemory(facts.memory->roles, facts.memory->limit, out);
  printLargest(*max_element(facts.memoryOverTime, [](auto &one, auto &other) { return one.peak < other.peak; }), out);
  printPrediction(*facts.prediction, out);
  out << formatv("rate    {0:f1} samples a second", facts.fit->samplesPerSecond);
  if (facts.fit->tokensPerSecond)
    out << formatv(", {0:f0} tokens a second", *facts.fit->tokensPerSecond)
        << formatv(" ({0:f0} a rank)", *facts.fit->tokensPerSecond / double(facts.plan->ranks));
  out << "\n";
  if (facts.utilization)
    printUtilization(*facts.utilization, out);
  out << "limited by " << facts.fit->limitedBy << "\n";
}

/// `findings`: those that the sink has got. `reports`: all facts are wanted.
static int findFit(const CompileOptions &options, raw_ostream &out, DiagnosticSink sink,
                   const std::vector<CompileDiagnostic> &findings, bool reports, Facts &facts) {
  auto begin = std::chrono::steady_clock::now();
  int code = Done;
  std::optional<SearchResult> result = search(options, sink, code);
  if (!result)
    return code;
  for (const CompileDiagnostic &finding : result->best->findings) // those of other plans are left out
    sink(finding);
  if (!mayWarn(options, findings, sink))
    return WrongInput;
  if (!describe(*result, reports, facts, sink))
    return Bug;
  if (options.json)
    return Done;
  printFit(options, *result, facts, out);
  if (options.alternatives)
    printAlternatives(*result, shownAlternatives, out);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  out << formatv("found   in {0:f1} s\n", took.count());
  return Done;
}

int fitModel(const CompileOptions &options, raw_ostream &out, DiagnosticSink sink, std::string *report) {
  std::vector<CompileDiagnostic> findings;
  auto keep = [&](const CompileDiagnostic &finding) {
    findings.push_back(finding);
    sink(finding);
  };
  Facts facts;
  int code = findFit(options, out, keep, findings, report != nullptr, facts);
  if (report)
    *report = reportAsJson(facts, {code, "", findings});
  return code;
}

/// Writes the completed plan with its reasons.
static bool writePlan(const SearchResult &result, const std::string &file, DiagnosticSink sink) {
  std::error_code error;
  raw_fd_ostream out(file, error);
  if (!error) {
    std::string plan = result.best->planned.plan.plan.toText(/*origins=*/true);
    out << commentReasons(result) << markFound(describeSearch(result, 0), plan);
    out.close();
    error = out.error();
    out.clear_error();
  }
  if (!error)
    return true;
  CompileDiagnostic finding;
  finding.file = file;
  finding.message = "cannot write the plan (--write-plan): " + error.message();
  sink(finding);
  return false;
}

int completeBySearch(const CompileOptions &options, raw_ostream &out, DiagnosticSink sink, FoundPlan &found) {
  int code = Done;
  std::optional<SearchResult> result = search(options, sink, code);
  if (!result)
    return code;
  bool printsElse = options.json || options.emits() || options.printPlan || options.list || !options.stopAfter.empty();
  if (!options.quiet && !printsElse && options.explain.empty()) {
    printSearch(*result, out);
    printAssumed(*result, out);
    if (options.alternatives)
      printAlternatives(*result, shownAlternatives, out);
  }
  if (!options.writePlan.empty() && !writePlan(*result, options.writePlan, sink))
    return WrongInput;
  found = {result->settings(), describeSearch(*result, shownAlternatives)};
  return Done;
}

} // namespace par
