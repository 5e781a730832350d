// Tries numbers of ranks, the fewest first. Bytes that no plan can do without rule out most; for the first one that is
// left the leanest degree is profiled, and its leanest plans are compiled unless estimates are far below the limit.
#include "Fewest.h"

#include "par/Search/Bound.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace llvm;

namespace par {

std::vector<int64_t> FewestFinder::counts(bool below) const {
  constexpr int64_t maxTimes = 64;
  std::set<int64_t> found; // ascending
  int64_t ranks = space.ranks;
  for (int64_t count = 1; count < ranks; ++count)
    if (below && ranks % count == 0)
      found.insert(count);
  for (int64_t count = 1; count < ranks * maxTimes; count *= 2)
    if ((count < ranks) == below && count != ranks)
      found.insert(count);
  for (int64_t count = ranks; !below && count < ranks * maxTimes; count *= 2)
    found.insert(2 * count);
  return {found.begin(), found.end()};
}

std::vector<Candidate> FewestFinder::mayFit(const Space &its) const {
  std::vector<Candidate> out;
  for (const Candidate &candidate : its.candidates()) {
    std::optional<ModelCost> least =
        profiler.isKnown(candidate) ? profiler.costOf(candidate) : profiler.lowerCost(candidate);
    bool isKnownNot = profiler.isKnown(candidate) && !least; // it does not compile
    if (!isKnownNot && (!least || boundNs(candidate, *least, its, machine, limit)))
      out.push_back(candidate);
  }
  return out;
}

/// More: a larger tensor axis, which shards more, fewer samples, replicas that share the masters.
static auto leanness(const Candidate &candidate) {
  return std::tuple(candidate.tensor, candidate.sequence, candidate.lean, -candidate.samples, candidate.zero > 0);
}

void FewestFinder::profileLeanest(const std::vector<Candidate> &candidates) {
  std::vector<const Candidate *> ordered;
  for (const Candidate &candidate : candidates)
    ordered.push_back(&candidate);
  llvm::stable_sort(ordered, [](const Candidate *a, const Candidate *b) { return leanness(*a) > leanness(*b); });
  for (const Candidate *candidate : ordered)
    if (profiler.costOf(*candidate)) // else the next one: it does not compile
      return;
}

/// Bytes of what is left after recomputation are estimated up to a fifth too low.
bool FewestFinder::isSure(const SearchedPlan &plan) const {
  if (!limit)
    return true;
  auto room = static_cast<double>(*limit);
  constexpr double plain = 0.8, recomputing = 0.7;
  return (!plan.estimate.recomputes && static_cast<double>(plan.estimate.peak) <= plain * room) ||
         (plan.candidate.stages == 1 && static_cast<double>(plan.estimate.least) <= recomputing * room);
}

/// Compiles a plan with as many microbatches as take the bytes of all: those in flight, and one to add up gradients.
std::optional<PlayedTrial> FewestFinder::compile(const Space &its, const SearchedPlan &plan) {
  ++compiledCount;
  Candidate few = plan.candidate;
  few.microbatches = 2 * few.stages * few.chunks;
  if (space.open.microbatches && few.microbatches < plan.candidate.microbatches) {
    std::string batch = "batch.size=" + std::to_string(few.microbatches * few.samples * few.data);
    if (std::optional<PlayedTrial> trial = trials.play(its, few, nullptr, {batch})) {
      trial->figures.stepNs = plan.estimate.stepNs;
      return trial;
    }
  }
  return trials.play(its, plan.candidate); // the plan or the model say the batch
}

/// The plan that needs fewest bytes, if it fits when it is compiled; else the next one. Estimates of small models are
/// less exact, and their trials cheap.
std::optional<SearchedPlan> FewestFinder::compileLeanest(const Space &its, std::vector<SearchedPlan> plans) {
  constexpr size_t few = 2, many = 8, nodes = 8000; // of all that are compiled
  size_t most = std::clamp(nodes / (modelNodes + 1), few, many);
  llvm::stable_sort(plans,
                    [](const SearchedPlan &a, const SearchedPlan &b) { return a.estimate.least < b.estimate.least; });
  plans.resize(std::min(plans.size(), most));
  for (SearchedPlan &plan : plans) {
    std::optional<PlayedTrial> trial = compile(its, plan);
    if (trial && trial->figures.fits) {
      plan.played = trial->figures;
      return plan;
    }
  }
  return std::nullopt;
}

std::optional<SearchedPlan> FewestFinder::fitOn(int64_t ranks) {
  Space its = space;
  its.ranks = ranks;
  std::vector<Candidate> candidates = mayFit(its);
  if (candidates.empty())
    return std::nullopt;
  profileLeanest(candidates);
  std::vector<SearchedPlan> fitting;
  std::optional<SearchedPlan> sure; // the one with the shortest step
  for (const Candidate &candidate : candidates) {
    if (!profiler.isKnown(candidate))
      continue;
    const std::optional<ModelCost> &cost = profiler.costOf(candidate);
    if (!cost || !boundNs(candidate, *cost, its, machine, limit))
      continue;
    SearchedPlan plan{candidate, estimate(candidate, *cost, its, machine, limit), std::nullopt};
    if (isSure(plan) && (!sure || plan.estimate.stepNs < sure->estimate.stepNs))
      sure = plan;
    fitting.push_back(plan);
  }
  if (sure)
    return sure;
  constexpr size_t largest = 10'000; // a larger model takes minutes to compile with recomputation
  if (modelNodes <= largest)
    return compileLeanest(its, std::move(fitting));
  bool mayDo = llvm::any_of(fitting, [](const SearchedPlan &plan) { return plan.estimate.fits; });
  if (mayDo && unsure == 0)
    unsure = ranks;
  return std::nullopt;
}

std::optional<FewestRanks> FewestFinder::find(bool below) {
  for (int64_t ranks : counts(below))
    if (std::optional<SearchedPlan> plan = fitOn(ranks))
      return FewestRanks{ranks, *plan, unsure};
  return std::nullopt;
}

} // namespace par
