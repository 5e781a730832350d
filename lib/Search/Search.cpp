// Profiles the model for each tensor degree and microbatch, evaluates candidates by their bounds, and compiles and
// plays the best ones. Small spaces, of models without equal layers too, are compiled one by one.
#include "par/Search/Search.h"

#include "OpenSpace.h"

#include "par/Compiler/Trial.h"
#include "par/Inspect/Memory.h"
#include "par/Search/BestFirst.h"
#include "par/Simulator/Simulator.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace llvm;

namespace par {

namespace {

/// One search.
class Search {
public:
  Search(const std::shared_ptr<const Model> &model, const PlanText &text, const SearchOptions &options,
         OpenSpace &&found)
      : model(model), text(text), options(options), hardware(found.hardware), profiler(model, text, out.space) {
    out.space = std::move(found.space);
    out.limit = found.limit;
  }

  SearchResult run();

private:
  void profile();
  bool isWorthIt(const Candidate &candidate);
  bool isTooLarge(const Candidate &candidate);
  bool isGoodEnough(int64_t tensor);
  void evaluate();
  void playBest();
  std::optional<Estimate> play(const Space &space, const Candidate &candidate, std::optional<size_t> place);
  void findFewest();
  std::optional<SearchedPlan> fitOn(int64_t ranks);
  void explain();
  void explain(StringRef key, function_ref<std::string(const Candidate &)> valueOf);

  const std::shared_ptr<const Model> &model;
  const PlanText &text;
  const SearchOptions &options;
  const Hardware hardware;
  SearchResult out;
  Profiler profiler;
  std::vector<SearchedPlan> all;                               ///< candidates that were profiled
  std::vector<int64_t> bounds;                                 ///< of them
  std::set<std::tuple<int64_t, int64_t, int64_t, bool>> worse; ///< degrees and samples that do not pay
  bool isSmall = false;                                        ///< each candidate is compiled
  std::pair<int64_t, size_t> fastest{INT64_MAX, 0};            ///< step and place of `out.best`
};

} // namespace

/// More samples a microbatch stop to pay where they take less than a hundredth less each.
static bool pays(const ModelCost &cost, int64_t samples, const ModelCost &before, int64_t fewer) {
  auto each = [](const ModelCost &of, int64_t count) { return (of.all().forward + of.all().backward) / count; };
  return each(cost, samples) * 100 < each(before, fewer) * 99;
}

/// Whether a candidate's degree and samples are profiled, and worth it.
bool Search::isWorthIt(const Candidate &candidate) {
  auto keyOf = [&](const Candidate &of, int64_t samples) {
    return std::tuple(of.tensor, of.rules(), samples, out.space.rounds && of.zero > 0);
  };
  auto key = keyOf(candidate, candidate.samples);
  if (!isSmall && !worse.count(key) && candidate.samples > 1) {
    Candidate half = candidate;
    half.samples /= 2;
    bool isWorse = worse.count(keyOf(half, half.samples));
    if (!isWorse)
      if (const auto &before = profiler.costOf(half), &cost = profiler.costOf(candidate); before && cost)
        isWorse = !pays(*cost, candidate.samples, *before, half.samples);
    if (isWorse)
      worse.insert(key);
  }
  return !worse.count(key) && !isTooLarge(candidate) && profiler.costOf(candidate);
}

/// Whether parameters, gradients and states by themselves, whole on each rank, are more than the limit, by a profile
/// that is there already.
bool Search::isTooLarge(const Candidate &candidate) {
  Candidate sharded = candidate;
  sharded.zero = 1;
  if (candidate.zero > 0 || !out.limit || !profiler.isKnown(sharded))
    return false;
  const std::optional<ModelCost> &cost = profiler.costOf(sharded);
  if (!cost)
    return false;
  RankCost all = cost->all();
  return all.params + all.grads + all.states > static_cast<int64_t>(*out.limit) * candidate.stages;
}

/// Whether the best estimate is so near to a bound of all tensor degrees that no other can gain much. Their local work
/// is at least their share of that of whole layers.
bool Search::isGoodEnough(int64_t tensor) {
  int64_t best = INT64_MAX;
  for (const SearchedPlan &plan : all)
    if (plan.estimate.fits)
      best = std::min(best, plan.estimate.stepNs);
  int64_t bound = bounds.empty() ? 0 : *std::min_element(bounds.begin(), bounds.end());
  return tensor > 1 && best != INT64_MAX && best - bound <= bound * options.tolerance / 1000;
}

void Search::profile() {
  out.space.layers = profiler.layers();
  std::vector<Candidate> candidates = out.space.candidates();
  isSmall = candidates.size() <= std::min(options.smallest, options.nodes / (model->graph.nodes.size() + 1));
  if (!isSmall && !profiler.hasLayers()) // a profile of the whole says nothing of its stages
    llvm::erase_if(candidates, [](const Candidate &candidate) { return candidate.stages > 1; });
  out.candidates = candidates.size();
  llvm::stable_sort(candidates, [](const Candidate &a, const Candidate &b) {
    return std::tuple(a.tensor, a.rules(), a.samples, -a.zero) < std::tuple(b.tensor, b.rules(), b.samples, -b.zero);
  });
  int64_t tensor = candidates.empty() ? 1 : candidates.front().tensor;
  for (const Candidate &candidate : candidates) {
    if (candidate.tensor != tensor && !isSmall && isGoodEnough(candidate.tensor)) {
      out.leftFrom = candidate.tensor;
      break;
    }
    tensor = candidate.tensor;
    if (!isWorthIt(candidate))
      continue;
    const ModelCost &cost = *profiler.costOf(candidate);
    all.push_back({candidate, estimate(candidate, cost, out.space, hardware, out.limit), std::nullopt});
    bounds.push_back(boundNs(candidate, cost));
  }
  out.profiles = profiler.compilations();
  out.reason = profiler.reason();
  out.layers = profiler.describeLayers();
  if (!bounds.empty())
    out.boundNs = *std::min_element(bounds.begin(), bounds.end());
}

/// Compiles and plays a candidate. With a place among all, `out.best` becomes it if it fits and is the fastest so far,
/// of equal ones the first by its place.
std::optional<Estimate> Search::play(const Space &space, const Candidate &candidate, std::optional<size_t> place) {
  PlanText trial = text;
  for (const std::string &setting : space.settingsOf(candidate))
    trial.settings.push_back(setting);
  std::optional<PlannedModel> planned = planModel(model, trial, {}, [](const CompileDiagnostic &) {});
  if (!planned)
    return std::nullopt;
  CompileObserver silent;
  ++out.compiled;
  Compiled compiled = compileTrial(std::move(*planned), silent);
  if (!compiled.bundle)
    return std::nullopt;
  Hardware alone = hardware;
  alone.cores = 0; // no decision depends on the machine that compiles
  Expected<Simulation> simulation = simulate(*compiled.bundle, compiled.planned.entry(), alone);
  if (!simulation) {
    consumeError(simulation.takeError());
    return std::nullopt;
  }
  Estimate played;
  played.stepNs = simulation->step / simulation->calls;
  for (const RoleMemory &role : measureMemory(*compiled.bundle))
    played.peak = std::max<int64_t>(played.peak, role.peak);
  played.recomputes =
      any_of(compiled.recomputes, [](const StageRecompute &stage) { return stage.savedBytes < stage.allBytes; });
  played.fits = !out.limit || played.peak <= static_cast<int64_t>(*out.limit);
  if (place && played.fits && std::pair(played.stepNs, *place) < fastest) {
    fastest = {played.stepNs, *place};
    out.best.reset();
    out.best.emplace(std::move(compiled));
  }
  return played;
}

void Search::evaluate() {
  auto costOf = [&](size_t index) -> std::optional<int64_t> {
    SearchedPlan &plan = all[index];
    if (!isSmall)
      return plan.estimate.fits ? std::optional(plan.estimate.stepNs) : std::nullopt;
    plan.played = play(out.space, plan.candidate, index);
    return plan.played && plan.played->fits ? std::optional(plan.played->stepNs) : std::nullopt;
  };
  for (auto [ns, index] : bestFirst(bounds, costOf, all.size()).best)
    out.plans.push_back(all[index]);
}

void Search::playBest() {
  std::vector<SearchedPlan> played;
  size_t tried = 0;
  // Estimates of memory may be too low: further candidates take the place of those that do not fit.
  for (; tried < out.plans.size() && tried < 3 * options.compiles && played.size() < options.compiles; ++tried) {
    SearchedPlan &plan = out.plans[tried];
    plan.played = play(out.space, plan.candidate, tried);
    if (plan.played && plan.played->fits)
      played.push_back(plan);
  }
  llvm::stable_sort(played,
                    [](const SearchedPlan &a, const SearchedPlan &b) { return a.played->stepNs < b.played->stepNs; });
  if (!played.empty())
    played.insert(played.end(), out.plans.begin() + tried, out.plans.end());
  out.plans = std::move(played);
}

/// A candidate for so many ranks that fits when it is compiled, of the three with the shortest estimated steps.
std::optional<SearchedPlan> Search::fitOn(int64_t ranks) {
  constexpr size_t tries = 3;
  Space space = out.space;
  space.ranks = ranks;
  std::vector<SearchedPlan> fitting;
  for (const Candidate &candidate : space.candidates()) {
    if (!profiler.isKnown(candidate))
      continue;
    if (const std::optional<ModelCost> &cost = profiler.costOf(candidate))
      if (Estimate found = estimate(candidate, *cost, space, hardware, out.limit); found.fits)
        fitting.push_back({candidate, found, std::nullopt});
  }
  llvm::stable_sort(fitting,
                    [](const SearchedPlan &a, const SearchedPlan &b) { return a.estimate.stepNs < b.estimate.stepNs; });
  for (SearchedPlan &plan : MutableArrayRef(fitting).take_front(tries)) {
    plan.played = play(space, plan.candidate, std::nullopt);
    if (plan.played && plan.played->fits)
      return plan;
  }
  return std::nullopt;
}

void Search::findFewest() {
  int64_t ranks = out.space.ranks;
  constexpr int64_t maxTimes = 64;
  int64_t begin = ranks, end = out.plans.empty() ? ranks * maxTimes : ranks / 2;
  while (!out.plans.empty() && begin % 2 == 0)
    begin /= 2;
  if (out.plans.empty())
    begin *= 2;
  for (int64_t fewer = begin; fewer <= end; fewer *= 2)
    if (std::optional<SearchedPlan> plan = fitOn(fewer)) {
      out.fewest = {fewer, *plan};
      return;
    }
  if (!out.plans.empty())
    out.fewest = {ranks, out.plans.front()};
}

void Search::explain(StringRef key, function_ref<std::string(const Candidate &)> valueOf) {
  const SearchedPlan &best = out.plans.front();
  KeyReason reason{key.str(), valueOf(best.candidate), "", 0};
  for (const SearchedPlan &plan : out.plans) {
    std::string value = valueOf(plan.candidate);
    int64_t slower = plan.slowerPermille(best);
    if (value == reason.value || (!reason.second.empty() && slower >= reason.slower))
      continue;
    reason.second = value;
    reason.slower = slower;
  }
  out.reasons.push_back(std::move(reason));
}

/// "12 rules over tp"
static std::string describeSharding(StringRef setting) {
  size_t rules = setting.count(": tp}");
  return std::to_string(rules) + (rules == 1 ? " rule" : " rules") + " over tp";
}

void Search::explain() {
  const OpenKeys &open = out.space.open;
  if (open.mesh)
    explain("mesh", [](const Candidate &candidate) { return describeMesh(candidate); });
  if (open.recipe && out.plans.front().candidate.tensor > 1)
    explain("shard", [&](const Candidate &candidate) {
      return candidate.tensor > 1 ? describeSharding(out.space.shardingOf(candidate)) : std::string("none");
    });
  if (open.microbatches)
    explain("batch.microbatches", [](const Candidate &candidate) { return std::to_string(candidate.microbatches); });
  if (open.zero && out.space.trains)
    explain("zero.level", [](const Candidate &candidate) { return std::to_string(candidate.zero); });
  if (open.schedule && out.plans.front().candidate.stages > 1)
    explain("pipeline.schedule",
            [](const Candidate &candidate) { return candidate.stages > 1 ? candidate.schedule : std::string("none"); });
}

int64_t SearchedPlan::slowerPermille(const SearchedPlan &best) const {
  bool bothPlayed = played && best.played;
  int64_t own = bothPlayed ? played->stepNs : estimate.stepNs;
  int64_t other = bothPlayed ? best.played->stepNs : best.estimate.stepNs;
  return (own - other) * 1000 / std::max<int64_t>(1, other);
}

SearchResult Search::run() {
  profile();
  evaluate();
  if (!isSmall)
    playBest();
  for (const SearchedPlan &plan : all)
    if (out.plans.empty() && (!out.leanest || plan.known().peak < out.leanest->known().peak))
      out.leanest = plan;
  if (!out.plans.empty())
    explain();
  if (options.findsFewest && out.space.open.mesh)
    findFewest();
  return std::move(out);
}

std::vector<std::string> SearchResult::settings() const { return space.settingsOf(plans.front().candidate); }

std::optional<SearchResult> searchPlans(const std::shared_ptr<const Model> &model, const PlanText &text,
                                        const SearchOptions &options, DiagnosticSink sink) {
  std::optional<OpenSpace> space = openSpace(model, text, options.ranks, sink);
  if (!space)
    return std::nullopt;
  return Search(model, text, options, std::move(*space)).run();
}

} // namespace par
