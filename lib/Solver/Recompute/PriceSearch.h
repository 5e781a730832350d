// The prices of bytes and copies at which the cheapest choice bounds all others from below, best.
#pragma once

#include "ChoiceStates.h"
#include <optional>

namespace par {

/// The Lagrangian dual of a recompute problem: one price for each peak, and one for copies of each direction, which is
/// at most that of time, as a copy that is not hidden costs its time. For any prices
///
///     recomputed ns + sum of price * (bytes - limit) over peaks + prices of copies * (copied ns - hidden ns)
///
/// of the cheapest choice is no more than the cost of any choice within all limits. LARAC (Jüttner et al. 2001) finds
/// the best price of each single peak exactly; with several, a subgradient ascent goes on from the best of these. Peaks
/// are added one after another: what is known of the earlier ones stays a bound.
class PriceSearch {
public:
  /// All must outlive it; `peaks` grow by addPeak().
  PriceSearch(const RecomputeProblem &problem, std::vector<BytePeak> &peaks, ChoiceStates &states);

  /// False if the peak is above its limit in every choice; getMinimum() then says which bytes it has.
  bool addPeak(BytePeak peak);
  /// Goes on until a choice is known that is at most `tolerance` above the bound, or the bound is not below `enough`.
  void improve(int64_t tolerance, int64_t enough);
  const ChoicePrices &getPrices() const { return prices; }
  /// No choice within the limits costs less.
  int64_t getBound() const { return bound; }
  /// The cheapest choice within the limits that was come across.
  const std::optional<RecomputeChoice> &getBest() const { return best; }
  /// The fewest bytes of the peak that cannot be met, and its limit.
  std::pair<int64_t, int64_t> getMinimum() const { return minimum; }

private:
  RecomputeChoice cheapest(const ChoicePrices &at);
  void offer(const RecomputeChoice &choice);
  __int128 valueOf(const RecomputeChoice &choice, const ChoicePrices &at) const;
  void take(const ChoicePrices &at, __int128 value);
  bool priceOne(unsigned peak, bool chargesCopies);
  std::vector<__int128> slopesOf(const RecomputeChoice &choice) const;
  bool climb(ChoicePrices &at, const RecomputeChoice &choice, int halvings) const;
  void fill();

  const RecomputeProblem &problem;
  std::vector<BytePeak> &peaks;
  ChoiceStates &states;
  bool moves = false; ///< some value can be moved
  ChoicePrices prices;
  int64_t bound = 0;
  std::optional<RecomputeChoice> best;
  std::pair<int64_t, int64_t> minimum = {0, 0};
};

/// The choice with the least weight at the prices, by a minimum cut.
RecomputeChoice cheapestByCut(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks,
                              const ChoicePrices &prices);

} // namespace par
