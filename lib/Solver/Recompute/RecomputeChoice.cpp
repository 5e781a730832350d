// Chooses the values to keep within all peaks' limits: prices bound the cost from below (PriceSearch.h), and a branch
// and bound ends the search (ChoiceSearch.h).
#include "par/Solver/Recompute/RecomputeChoice.h"
#include "ChoiceSearch.h"
#include "PriceSearch.h"
#include "llvm/ADT/STLExtras.h"

using namespace par;
using llvm::Error;
using llvm::Twine;

int64_t RecomputeProblem::minBytes() const {
  std::vector<BytePeak> one = allPeaks();
  one.resize(1);
  return cheapestByCut(*this, one, {1, {__int128(1) << 51}, 1, 1}).bytes;
}

RecomputeChoice RecomputeProblem::cheapestAt(int64_t perNs, int64_t perByte) const {
  std::vector<BytePeak> one = allPeaks();
  one.resize(1);
  return cheapestByCut(*this, one, {perNs, {perByte}, perNs, perNs});
}

/// Without the peaks that no choice exceeds.
static std::vector<BytePeak> findBinding(const RecomputeProblem &problem) {
  std::vector<BytePeak> peaks = problem.allPeaks();
  llvm::erase_if(peaks, [&](const BytePeak &peak) {
    int64_t most = 0;
    for (auto [index, value] : llvm::enumerate(problem.values))
      if (!value.isAvailable)
        most += std::max({peak.saved[index], peak.recomputed[index], value.copyNs >= 0 ? peak.moved[index] : 0});
    return most <= peak.limit;
  });
  return peaks;
}

/// All that is needed is saved.
static RecomputeChoice saveAll(const RecomputeProblem &problem) {
  RecomputeChoice all = problem.evaluate(std::vector<bool>(problem.values.size(), true));
  all.minCost = all.cost;
  return all;
}

/// Saves values that need not be moved, the longest copies first: where copies are hidden, they cost nothing, and the
/// search does not tell few from many.
static RecomputeChoice moveLess(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks,
                                RecomputeChoice choice) {
  std::vector<unsigned> moved;
  for (unsigned index = 0; index < choice.moved.size(); ++index)
    if (choice.moved[index])
      moved.push_back(index);
  llvm::stable_sort(
      moved, [&](unsigned one, unsigned other) { return problem.values[one].copyNs > problem.values[other].copyNs; });
  for (unsigned index : moved) {
    std::vector<bool> saved = choice.saved;
    saved[index] = true;
    RecomputeChoice less = problem.evaluate(saved, choice.moved);
    less.minCost = choice.minCost;
    if (less.cost <= choice.cost && problem.fits(less, peaks))
      choice = std::move(less);
  }
  return choice;
}

llvm::Expected<RecomputeChoice> RecomputeProblem::solve() const {
  if (Error error = check())
    return error;
  std::vector<BytePeak> binding = findBinding(*this);
  if (binding.empty())
    return saveAll(*this);
  ChoiceStates states(*this, binding);
  PriceSearch search(*this, binding, states);
  if (!search.run()) {
    auto [least, limit] = search.getMinimum();
    return solverError("the backward needs at least " + Twine(least) + " saved bytes per microbatch, the budget is " +
                       Twine(limit));
  }
  std::optional<RecomputeChoice> best = search.getBest();
  if (!states.areListed()) {
    if (!best)
      return RecomputeChoice::notFound(search.getBound());
    best->minCost = std::min(search.getBound(), best->cost);
  } else {
    best = ChoiceSearch(*this, binding, states, search.getPrices(), std::move(best), search.getBound()).run();
  }
  if (best)
    return best->cost < 0 ? *best : moveLess(*this, binding, *best);
  return solverError("no choice is within the limits of all " + Twine(binding.size()) + " peaks");
}
