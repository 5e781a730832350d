// Sets of values that the decisions about later ones want, and the cheapest completion of each.
#pragma once

#include "par/Solver/Recompute/RecomputeChoice.h"
#include <map>

namespace par {

/// The decision on a value that backward wants.
enum class Fate : uint8_t { Saved, Moved, Recomputed };

/// Weights of what a choice costs: of a recomputed ns, of a byte at each peak, and of a copied ns each way.
struct ChoicePrices {
  __int128 perNs = 1;
  std::vector<__int128> perByte; ///< by peak
  __int128 perCopyOut = 0, perCopyIn = 0;
};

/// The weight that a value adds to a choice, by its fate.
struct ValueWeight {
  __int128 saved = 0, moved = 0, recomputed = 0;
};
std::vector<ValueWeight> weigh(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks,
                               const ChoicePrices &prices);

/// Decisions are made from the last value to the first. At a place, values from 0 on are undecided, up to that one; a
/// state there is the set of those that are wanted for others. Decisions that lead to one state have the same future:
///
///     values   x  h (from x)  g (from h)        at place 2, g is decided
///     states at 2:  {} (g is saved), {h} (g is recomputed)
class ChoiceStates {
public:
  static constexpr unsigned none = -1;
  struct State {
    bool decides = false;                    ///< the value at the place is wanted, so that there is a choice
    unsigned kept = none, recomputed = none; ///< states at the place before
    // The cheapest completion at the prices:
    Fate fate = Fate::Saved;
    __int128 weight = 0;
    int64_t recomputeNs = 0, copyNs = 0;
  };

  ChoiceStates(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks);

  /// False if there are too many states; nothing else may be called then.
  bool areListed() const { return listed; }
  /// Finds the cheapest completions.
  void price(const ChoicePrices &prices);
  const State &at(unsigned place, unsigned state) const { return states[place][state]; }
  /// Bytes at a peak, of the cheapest completion and of the one that has fewest there.
  int64_t bytes(unsigned place, unsigned state, unsigned peak) const {
    return used[place][state * peaks.size() + peak];
  }
  int64_t minBytes(unsigned place, unsigned state, unsigned peak) const {
    return least[place][state * peaks.size() + peak];
  }
  /// Adds the cheapest completion of a state to a choice of the values from `place` on.
  void complete(unsigned place, unsigned state, std::vector<bool> &saved, std::vector<bool> &moved) const;
  /// The cheapest choice at the prices.
  RecomputeChoice cheapest() const;

private:
  using Wanted = std::vector<unsigned>; ///< sorted; without those that are needed anyway
  bool list();
  unsigned stateOf(unsigned place, Wanted wanted);
  void findLeast();

  const RecomputeProblem &problem;
  const std::vector<BytePeak> &peaks;
  bool listed;
  std::vector<std::map<Wanted, unsigned>> sets;  ///< by place, while they are listed
  std::vector<std::vector<State>> states;        ///< by place
  std::vector<std::vector<int64_t>> used, least; ///< by place, then by state and peak
};

} // namespace par
