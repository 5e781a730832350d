// Chooses the values to keep within all peaks' limits: prices bound the cost from below (PriceSearch.h), and a branch
// and bound ends the search (ChoiceSearch.h).
#include "par/Solver/Recompute/RecomputeChoice.h"
#include "PriceSearch.h"
#include "par/Solver/Recompute/RecomputeSearch.h"
#include "llvm/ADT/STLExtras.h"

using namespace par;
using llvm::Error;
using llvm::Twine;

/// By a minimum cut at a price of a byte that no time outweighs.
static RecomputeChoice smallestByCut(const RecomputeProblem &problem) {
  std::vector<BytePeak> one = problem.allPeaks();
  one.resize(1);
  return cheapestByCut(problem, one, {1, {__int128(1) << 51}, 1, 1});
}

int64_t RecomputeProblem::minBytes() const { return smallestByCut(*this).bytes; }

RecomputeChoice RecomputeProblem::smallest() const {
  RecomputeChoice choice = smallestByCut(*this);
  choice.minCost = choice.cost;
  if (llvm::none_of(values, [](const ForwardValue &value) { return value.copyNs >= 0; }))
    return choice;
  // Prices do not know which copies are hidden.
  RecomputeProblem problem = *this;
  problem.budget = choice.bytes;
  problem.peaks.clear();
  llvm::Expected<RecomputeChoice> exact = problem.solve();
  if (!exact) {
    llvm::consumeError(exact.takeError());
    return choice;
  }
  return exact->cost < 0 ? choice : *exact;
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

llvm::Expected<RecomputeChoice> RecomputeProblem::solve() const {
  if (Error error = check())
    return error;
  std::vector<BytePeak> binding = findBinding(*this);
  if (binding.empty())
    return saveAll(*this);
  RecomputeSearch search(*this);
  for (const BytePeak &peak : binding)
    if (!search.addPeak(peak)) {
      auto [least, limit] = search.getMinimum();
      return solverError("the backward needs at least " + Twine(least) + " saved bytes per microbatch, the budget is " +
                         Twine(limit));
    }
  constexpr int64_t any = std::numeric_limits<int64_t>::max();
  search.improve(any);
  if (std::optional<RecomputeChoice> best = search.finish(any))
    return *best;
  return solverError("no choice is within the limits of all " + Twine(binding.size()) + " peaks");
}
