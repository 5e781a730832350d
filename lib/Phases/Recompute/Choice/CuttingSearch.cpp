#include "CuttingSearch.h"

using namespace mlir;

namespace par {

CuttingSearch::CuttingSearch(Cutting cut, int64_t bytes, const KeptValues &first)
    : cutting(std::make_unique<Cutting>(std::move(cut))), bytes(bytes), search(cutting->getProblem()) {
  addPeak(cutting->findPeak(first));
}

void CuttingSearch::addPeak(Cutting::Place place) {
  constexpr unsigned maxPeaks = 16;
  if (++peaks > maxPeaks) {
    ended = true;
  } else if (!search.addPeak(cutting->peakAt(place, bytes))) {
    bound = std::numeric_limits<int64_t>::max();
    ended = true;
  } else {
    bound = std::max(bound, search.getBound());
  }
}

/// Whether the choice is within the bytes everywhere; else the place with the most bytes becomes a peak.
bool CuttingSearch::take(const RecomputeChoice &choice) {
  Cutting::Place worst = cutting->findPeak(cutting->keptBy(choice));
  if (worst.bytes > bytes) {
    addPeak(worst);
    return false;
  }
  if (!best || choice.cost <= best->cost) // the later of equal ones moves less
    best = choice;
  return true;
}

/// Whether the steps of a large problem have brought nothing for a while: prices are as near as they come, and peaks of
/// equal layers follow each other.
bool CuttingSearch::isIdle() {
  constexpr unsigned patience = 5;
  std::pair<int64_t, int64_t> now(bound, best ? best->cost : -1);
  idle = now == before ? idle + 1 : 0;
  before = now;
  return getTolerance() > 0 && best && idle >= patience;
}

/// Prices find a choice soon; only if it is within the bytes everywhere, and not good enough, it is worth the search
/// that proves one.
void CuttingSearch::step(int64_t enough) {
  search.improve(enough);
  bound = std::max(bound, search.getBound());
  if (bound >= enough || isIdle())
    ended = true;
  else if (const std::optional<RecomputeChoice> &found = search.getBest(); !found || take(*found))
    finish(enough);
}

void CuttingSearch::finish(int64_t enough) {
  std::optional<RecomputeChoice> found = search.finish(best ? std::min(enough, best->cost + 1) : enough);
  if (found)
    bound = std::max(bound, found->minCost);
  else
    bound = std::max(bound, enough - getTolerance());
  if (!found || found->cost < 0 || take(*found))
    ended = true;
}

} // namespace par
