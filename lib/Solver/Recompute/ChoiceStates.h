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
  };

  explicit ChoiceStates(const RecomputeProblem &problem);

  /// False if there are too many states; nothing else may be called then.
  bool areListed() const { return listed; }
  /// Finds the cheapest completions.
  void price(const std::vector<BytePeak> &peaks, const ChoicePrices &prices);
  /// Their bytes and times, for the functions below.
  void addUp(const std::vector<BytePeak> &peaks);

  const State &at(unsigned place, unsigned state) const { return states[first[place] + state]; }
  /// ns of the cheapest completion: recomputed, and copied each way.
  std::pair<int64_t, int64_t> times(unsigned place, unsigned state) const { return ns[first[place] + state]; }
  /// Bytes at a peak, of the cheapest completion and of the one that has fewest there.
  int64_t bytes(unsigned place, unsigned state, unsigned peak) const {
    return used[(first[place] + state) * count + peak];
  }
  int64_t minBytes(unsigned place, unsigned state, unsigned peak) const {
    return least[(first[place] + state) * count + peak];
  }
  /// Adds the cheapest completion of a state to a choice of the values from `place` on.
  void complete(unsigned place, unsigned state, std::vector<bool> &saved, std::vector<bool> &moved) const;
  /// The cheapest choice at the prices.
  RecomputeChoice cheapest() const;

private:
  using Wanted = std::vector<unsigned>; ///< sorted; without those that are needed anyway
  bool list();
  unsigned stateOf(unsigned place, Wanted wanted);
  void addUp(unsigned place, unsigned state, const std::vector<BytePeak> &peaks);

  const RecomputeProblem &problem;
  bool listed;
  size_t count = 0;                             ///< of peaks
  std::vector<std::map<Wanted, unsigned>> sets; ///< by place, while they are listed
  std::vector<std::vector<State>> byPlace;      ///< while they are listed
  std::vector<size_t> first;                    ///< by place, of its states among all
  std::vector<State> states;                    ///< from the first place to the last
  std::vector<std::pair<int64_t, int64_t>> ns;  ///< by state
  std::vector<int64_t> used, least;             ///< by state, then by peak
};

} // namespace par
