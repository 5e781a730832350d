// An exact search for the values to save, pruned by a Lagrangian bound.
#pragma once

#include "par/Solver/Recompute/RecomputeChoice.h"
#include <map>
#include <optional>

namespace par {

/// Weights of a saved byte and of a recomputed ns.
struct ChoicePrices {
  __int128 perByte = 0, perNs = 0;
};

/// Branch and bound over the values from the last to the first. A label is a decision, saved or recomputed, for each
/// value so far; labels that want the same earlier values compete by bytes and cost, so that equal layers do not
/// multiply them. The best completion of a label at the given prices is known for each set of wanted values: it bounds
/// the label from below, and is a choice itself where it fits the budget.
class ChoiceSearch {
public:
  /// `prices`: the best Lagrangian price. `best`: a choice within the budget.
  ChoiceSearch(const RecomputeProblem &problem, ChoicePrices prices, RecomputeChoice best);

  /// The best choice found; its `minCost` is its cost if it is optimal.
  RecomputeChoice run();

private:
  using Wanted = std::vector<unsigned>; ///< sorted; without those that are needed anyway
  /// A set of wanted values at a place, and its cheapest completions.
  struct State {
    static constexpr unsigned none = -1;
    bool decides = false;                      ///< the value at the place is wanted, so that there is a choice
    unsigned saved = none, recomputed = none;  ///< states at the place before
    bool completesSaved = false;               ///< of the cheapest completion at the prices
    __int128 completion = 0;                   ///< its weight
    int64_t bytes = 0, cost = 0, minBytes = 0; ///< its figures, and the least bytes of all completions
  };
  struct Label {
    int64_t bytes = 0, cost = 0;
    unsigned state = 0, before = 0; ///< `before`: the label one place later in the problem
    bool saves = false;
  };

  bool listStates();
  void complete(unsigned place);
  unsigned stateOf(unsigned place, Wanted wanted);
  void expand(unsigned place);
  void add(std::vector<Label> &next, unsigned place, Label label);
  void prune(std::vector<Label> &next, unsigned place);
  int64_t boundOf(const Label &label, unsigned place) const;
  RecomputeChoice completed(unsigned place, unsigned label) const;

  const RecomputeProblem &problem;
  ChoicePrices prices;
  RecomputeChoice best;
  int64_t minDropped; ///< the lowest bound of labels that were dropped for want of room
  /// By place: values from 0 to place - 1 are undecided there.
  std::vector<std::map<Wanted, unsigned>> sets;
  std::vector<std::vector<State>> states;
  std::vector<std::vector<Label>> labels;
};

} // namespace par
