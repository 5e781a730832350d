#pragma once

#include "Cutting.h"

#include "par/Solver/Recompute/RecomputeSearch.h"

namespace par {

/// The search for the cheapest choice of one cutting, a step at a time. Each place of a backward is a peak of the
/// solver's problem (Cutting.h). It knows only the highest ones: as long as a choice is above the bytes at another
/// place, that one is added. A choice that is within the bytes at all places is then as good as one for which all had
/// been known, and the bound holds all the time.
class CuttingSearch {
public:
  /// For so many bytes at each place. `first`: values kept at the first peak that is known.
  CuttingSearch(Cutting cutting, int64_t bytes, const KeptValues &first);

  /// Finds out more; `enough`: choices that take as long are of no use.
  void step(int64_t enough);
  /// No step will find more.
  bool hasEnded() const { return ended; }
  /// ns that no choice is below; the largest integer if no choice is within the bytes.
  int64_t getBound() const { return bound; }
  int64_t getTolerance() const { return search.getTolerance(); }
  /// The cheapest choice so far that is within the bytes everywhere.
  const std::optional<RecomputeChoice> &getBest() const { return best; }
  const Cutting &getCutting() const { return *cutting; }

private:
  void addPeak(Cutting::Place place);
  bool take(const RecomputeChoice &choice);
  void finish(int64_t enough);
  bool isIdle();

  std::unique_ptr<Cutting> cutting; ///< `search` refers to its problem
  int64_t bytes;
  RecomputeSearch search;
  int64_t bound = 0;
  unsigned peaks = 0, idle = 0;
  std::pair<int64_t, int64_t> before{-1, -1}; ///< bound and best ns, of the last step
  bool ended = false;
  std::optional<RecomputeChoice> best;
};

} // namespace par
