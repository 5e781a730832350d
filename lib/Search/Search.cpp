// Profiles the model for each tensor degree and microbatch, evaluates candidates by their bounds, and compiles and
// plays the best ones. Small spaces, of models without equal layers too, are compiled one by one.
#include "par/Search/Search.h"

#include "Fewest.h"
#include "Finalists.h"
#include "OpenSpace.h"
#include "ProfileSpace.h"
#include "Trials.h"

#include "par/Compiler/Trial.h"
#include "par/Search/BestFirst.h"
#include "par/Search/Bound.h"
#include "par/Simulator/Simulator.h"

#include "llvm/ADT/StringExtras.h"

#include <future>

using namespace llvm;

namespace par {

namespace {

/// Trials that are cheap: estimates of models that have so many are off by a third and more.
constexpr size_t manyTrials = 30;

/// One search.
class Search {
public:
  Search(const std::shared_ptr<const Model> &model, const PlanText &text, const SearchOptions &options,
         OpenSpace &&found)
      : model(model), options(options), machine(found.hardware),
        out{.space = std::move(found.space), .limit = found.limit}, profiler(model, text, out.space),
        trials(model, text, machine.hardware(), out.limit), early(trials, out.space) {}

  SearchResult run();

private:
  void profile();
  void evaluate();
  /// Trials that a model of this size has beside `compiles`.
  size_t fewTrials() const { return options.compiles > 1 ? options.nodes / (model->graph.nodes.size() + 1) : 0; }
  /// Whether it may fit: estimates of memory may be too high, and a small model can afford to look.
  bool mayFit(const SearchedPlan &plan) const;
  void playBest();
  std::optional<PlayedTrial> play(const Candidate &candidate);
  std::optional<Estimate> take(std::optional<PlayedTrial> trial, size_t place);
  void boundAgain(SearchedPlan &plan);
  void offloadStates();
  /// Lays the best plan's replicas farther apart than its stages, if that is faster.
  void placeAxes();
  void findFewest();

  const std::shared_ptr<const Model> &model;
  const SearchOptions &options;
  const Machine machine;
  SearchResult out;
  Profiler profiler;
  const Trials trials;
  EarlyTrial early;
  std::vector<SearchedPlan> all;                    ///< candidates that were profiled
  std::vector<int64_t> bounds;                      ///< of them
  bool isSmall = false;                             ///< each candidate is compiled
  std::pair<int64_t, size_t> fastest{INT64_MAX, 0}; ///< step and place of `out.best`
};

} // namespace

void Search::profile() {
  out.space.layers = profiler.layers();
  std::vector<Candidate> candidates = out.space.candidates();
  isSmall = candidates.size() <= std::min(options.smallest, options.nodes / (model->graph.nodes.size() + 1));
  out.candidates = candidates.size();
  // Estimates of small models may be too low, so bounds above them are no reason to leave out what is cheap to profile.
  bool profilesAll = isSmall || fewTrials() >= 5 * manyTrials;
  int64_t tolerance = fewTrials() >= manyTrials ? -330 : options.tolerance; // bounds up to half as long again
  // Few of those that are left may be better by much.
  constexpr int64_t near = 10;
  auto tryEarly = [&](const SearchedPlan &best, int64_t bound) {
    if (!isSmall && best.estimate.stepNs - bound <= bound / near)
      early.start(best.candidate);
  };
  ProfiledSpace found =
      profileSpace(std::move(candidates), profiler, out.space, machine, out.limit, tolerance, profilesAll, tryEarly);
  all = std::move(found.plans);
  bounds = std::move(found.bounds);
  out.boundNs = found.boundNs;
  out.left = found.left;
  out.profiles = profiler.compilations();
  out.reason = profiler.reason();
  out.layers = profiler.describeLayers();
}

/// Compiles and plays a candidate, each one once. Several threads may do so.
std::optional<PlayedTrial> Search::play(const Candidate &candidate) {
  return early.isOf(candidate) ? early.take() : trials.play(out.space, candidate);
}

/// Makes `out.best` the trial of a place among all if it fits and is the fastest so far, of equal ones the first by its
/// place.
std::optional<Estimate> Search::take(std::optional<PlayedTrial> trial, size_t place) {
  ++out.compiled;
  if (!trial)
    return std::nullopt;
  Estimate figures = trial->figures;
  if (figures.fits && std::pair(figures.stepNs, place) < fastest) {
    fastest = {figures.stepNs, place};
    out.best.reset();
    out.best.emplace(std::move(trial->compiled));
    out.simulation = std::move(trial->simulation);
  }
  return figures;
}

bool Search::mayFit(const SearchedPlan &plan) const {
  bool isNear = out.limit && plan.boundNs != INT64_MAX && plan.estimate.least / 2 <= static_cast<int64_t>(*out.limit);
  return plan.estimate.fits || (isNear && fewTrials() > options.compiles);
}

void Search::evaluate() {
  auto costOf = [&](size_t index) -> std::optional<int64_t> {
    SearchedPlan &plan = all[index];
    if (!isSmall)
      return mayFit(plan) ? std::optional(plan.estimate.stepNs) : std::nullopt;
    plan.played = take(play(plan.candidate), index);
    return plan.played && plan.played->fits ? std::optional(plan.played->stepNs) : std::nullopt;
  };
  for (auto [ns, index] : bestFirst(bounds, costOf, all.size()).best)
    out.plans.push_back(all[index]);
}

/// Plans that were played.
static void sortBySteps(std::vector<SearchedPlan> &plans) {
  llvm::stable_sort(plans,
                    [](const SearchedPlan &a, const SearchedPlan &b) { return a.played->stepNs < b.played->stepNs; });
}

void Search::playBest() {
  // More are tried of small models, whose launches and latencies estimates count worse.
  size_t few = fewTrials();
  std::vector<SearchedPlan> estimated = std::move(out.plans), played;
  if (estimated.empty() || !early.isOf(estimated.front().candidate))
    early.stop();
  bool isTiny = few >= manyTrials;
  double doubt = isTiny ? 1.5 : few >= manyTrials / 2 ? 1.25 : 1;
  few *= isTiny ? 2 : 1;
  Finalists finalists(estimated, /*eachGroup=*/few > options.compiles, doubt, out.limit);
  size_t tried = 0;
  auto next = [&](size_t beside) -> std::optional<size_t> {
    // Estimates of memory may be too low: further candidates take the place of those that do not fit, but not all.
    bool ends = finalists.misfits() + beside >= std::max(few, 3 * options.compiles + 3);
    bool must = played.size() + beside < options.compiles && tried < 3 * options.compiles;
    std::optional<size_t> index = !ends && (must || tried < few) ? finalists.next(must) : std::nullopt;
    while (index && estimated[*index].boundNs >= fastest.first) // it cannot be faster than what was played
      index = finalists.next(must);
    tried += index.has_value();
    return index;
  };
  auto note = [&](size_t index, std::optional<PlayedTrial> trial) {
    SearchedPlan &plan = estimated[index];
    plan.played = take(std::move(trial), index);
    finalists.note(index, plan.played);
    if (plan.played && plan.played->fits)
      played.push_back(plan);
  };
  while (std::optional<size_t> index = next(0)) {
    // Each has a context of its own, so two compile at once: as many are tried as one after the other.
    std::future<std::optional<PlayedTrial>> other;
    std::optional<size_t> beside = next(1);
    if (beside)
      other =
          std::async(std::launch::async, [this, candidate = estimated[*beside].candidate] { return play(candidate); });
    note(*index, play(estimated[*index].candidate));
    if (beside)
      note(*beside, other.get());
  }
  early.stop();
  sortBySteps(played);
  if (!played.empty())
    llvm::copy_if(finalists.untried(), std::back_inserter(played),
                  [](const SearchedPlan &plan) { return plan.estimate.fits; });
  out.plans = std::move(played);
}

/// Bounds a plan whose candidate was changed, which is a further one of the space.
void Search::boundAgain(SearchedPlan &plan) {
  const std::optional<ModelCost> &cost = profiler.costOf(plan.candidate);
  std::optional<int64_t> bound;
  if (cost)
    bound = boundNs(plan.candidate, *cost, out.space, machine, out.limit);
  plan.boundNs = bound.value_or(0);
  if (bound)
    out.boundNs = std::min(out.boundNs, *bound);
}

/// If no plan fits, the states of the leanest candidates leave the device: each use is a copy over the host's link.
void Search::offloadStates() {
  std::vector<SearchedPlan> leanest = all;
  llvm::stable_sort(leanest,
                    [](const SearchedPlan &a, const SearchedPlan &b) { return a.known().peak < b.known().peak; });
  leanest.resize(std::min<size_t>(leanest.size(), 8)); // each is compiled
  std::optional<SearchedPlan> least;                   // by its bytes when compiled, which an estimate may be below
  for (SearchedPlan &plan : leanest) {
    plan.candidate.offloads = true;
    boundAgain(plan);
    plan.played = take(play(plan.candidate), out.plans.size());
    if (plan.played && (!least || plan.played->peak < least->played->peak))
      least = plan;
    if (plan.played && plan.played->fits)
      out.plans.push_back(plan);
    if (out.plans.size() == options.compiles)
      break;
  }
  if (least)
    out.leanest = least;
  sortBySteps(out.plans);
}

/// Estimates leave transfers between stages out, so placements are played. The other order's groups of replicas lie no
/// nearer, but an outer link may be the faster one: its own bound counts too.
void Search::placeAxes() {
  const Candidate &found = out.plans.front().candidate;
  int64_t hostRanks = out.space.hostRanks;
  bool differs = found.stages > 1 && found.data > 1 && hostRanks > 0 && found.ranks() > hostRanks;
  if (!out.space.open.order || !differs || !out.plans.front().played)
    return;
  SearchedPlan other = out.plans.front();
  other.candidate.dataOutside = true;
  PlanAxes order{"dp"};
  for (const auto &[name, size] : out.best->planned.plan.plan.mesh)
    if (name != order.front())
      order.push_back(name);
  std::optional<int64_t> ns = playInOrder(*out.best, order);
  if (!ns || *ns >= other.played->stepNs)
    return;
  other.played = take(play(other.candidate), SIZE_MAX); // of equal ones the order that was found stays
  if (!other.played || !other.played->fits || other.played->stepNs >= out.plans.front().played->stepNs)
    return;
  if (const std::optional<ModelCost> &cost = profiler.costOf(other.candidate))
    other.estimate = estimate(other.candidate, *cost, out.space, machine, out.limit);
  boundAgain(other);
  out.plans.insert(out.plans.begin(), other);
}

void Search::findFewest() {
  FewestFinder finder(out.space, profiler, machine, trials, out.limit, model->graph.nodes.size());
  out.fewest = finder.find(/*below=*/!out.plans.empty());
  out.compiled += finder.compiled();
  out.profiles = profiler.compilations();
  if (!out.fewest && !out.plans.empty())
    out.fewest = {out.space.ranks, out.plans.front(), finder.mayDo()};
}

SearchResult Search::run() {
  profile();
  evaluate();
  if (!isSmall)
    playBest();
  for (const SearchedPlan &plan : all)
    if (out.plans.empty() && (!out.leanest || plan.known().peak < out.leanest->known().peak))
      out.leanest = plan;
  if (out.plans.empty() && out.space.open.offload)
    offloadStates();
  if (!out.plans.empty())
    placeAxes();
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
