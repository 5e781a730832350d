// Corrects a model's time by rows that were measured near the shape that is asked for.
#pragma once

#include "par/Costs/CostTable.h"

namespace par {

/// log2 of a count in 1/1024 of a doubling; between powers of two along a straight line, so that it needs no floating
/// point. For 0 it is that of 1.
int64_t doublings(int64_t count);

/// Rows near one shape. A row counts while each dim is within two doublings, the more the nearer it is (Shepard 1968,
/// with weights that end at that distance). The time is the model's times the weighted mean of measured/model; that
/// mean goes over to 1 as the nearest row is more than one doubling away, so that a time does not leap.
class Nearby {
public:
  static constexpr int64_t doubling = 1024, farthest = 2 * doubling;

  /// A row at this distance in each dim; `model` is what the model says of its shape. Returns false if it is too far.
  /// `apart` is a distance that no dim has, as of other transposes.
  template <typename Model>
  void add(std::initializer_list<std::pair<int64_t, int64_t>> dims, int64_t apart, int64_t measured, Model model) {
    int64_t most = apart, sum = apart;
    for (auto [asked, row] : dims) {
      int64_t distance = std::abs(doublings(asked) - doublings(row));
      most = std::max(most, distance);
      sum += distance;
    }
    if (most <= farthest)
      addRatio(most, sum, measured, model());
  }
  /// A row of this very shape.
  void addExact(int64_t measured) {
    exactSum += measured;
    ++exactCount;
  }

  Cost costOf(int64_t model) const;

private:
  void addRatio(int64_t most, int64_t sum, int64_t measured, int64_t model);

  int64_t exactSum = 0, exactCount = 0;
  int64_t nearest = farthest + 1;
  __int128 weighted = 0, weights = 0;
};

} // namespace par
