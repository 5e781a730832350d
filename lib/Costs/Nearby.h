// Corrects a model's time by rows that were measured near the shape that is asked for.
#pragma once

#include "par/Costs/CostTable.h"

#include "llvm/ADT/SmallVector.h"

#include <limits>

namespace par {

/// log2 of a count in 1/1024 of a doubling; between powers of two along a straight line, so that it needs no floating
/// point. For 0 it is that of 1.
int64_t doublings(int64_t count);

/// Rows near one shape. The nearest row opens a window of two doublings beyond it; a row in it counts the more the
/// nearer it is (Shepard 1968, with the fourth power, and weights that end where the window does). The time is what any
/// work of the kind takes, and the model's times the weighted mean of measured/model beyond that. It holds some
/// doublings beyond the rows, too: larger work of a kind reaches about the part of the peak that smaller work does.
/// It goes over to the model as the nearest row is farther than `kept`, and no row counts beyond `farthest`, so that a
/// time does not leap.
class Nearby {
public:
  static constexpr int64_t doubling = 1024, window = 2 * doubling;

  /// How far a correction reaches, in doublings of the dim that differs most.
  struct Reach {
    int64_t kept, farthest;
    bool hasConstant; ///< whether rows tell what any work of the kind takes; latency and link say it of messages
  };
  static constexpr Reach local{4 * doubling, 8 * doubling, true};
  static constexpr Reach messages{doubling, window, false};

  explicit Nearby(Reach reach = local) : reach(reach) {}

  /// A row at this distance in each dim; `model` is what the model says of its shape.
  /// `apart` is a distance that no dim has, as of other transposes.
  template <typename Model>
  void add(std::initializer_list<std::pair<int64_t, int64_t>> dims, int64_t apart, int64_t measured, Model model) {
    int64_t most = apart, sum = apart;
    for (auto [asked, row] : dims) {
      int64_t distance = std::abs(doublings(asked) - doublings(row));
      most = std::max(most, distance);
      sum += distance;
    }
    if (most <= reach.farthest || reach.hasConstant)
      rows.push_back({most, sum, measured, std::max<int64_t>(model(), 1)});
    nearest = std::min(nearest, most);
  }
  /// A row of this very shape.
  void addExact(int64_t measured) {
    exactSum += measured;
    ++exactCount;
  }

  Cost costOf(int64_t model) const;

private:
  struct Row {
    int64_t most, sum, measured, model;
  };
  int64_t constant() const;

  Reach reach;
  int64_t exactSum = 0, exactCount = 0;
  int64_t nearest = std::numeric_limits<int64_t>::max();
  llvm::SmallVector<Row> rows;
};

} // namespace par
