// An exact search for the values to save, pruned by a Lagrangian bound.
#pragma once

#include "ChoiceStates.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>

namespace par {

/// Branch and bound over the values from the last to the first. A label is a decision, saved, moved or recomputed, for
/// each value so far; labels of one state (ChoiceStates.h) compete by the bytes left at each peak, copies and cost, so
/// that equal layers do not multiply them. Peaks for which all undecided values count alike are one from there on: the
/// one with the fewest bytes left stands for them.
///
/// The cheapest completion of a label at the given prices bounds it from below, and is a choice itself where it fits.
class ChoiceSearch {
public:
  /// Known before the search.
  struct Known {
    std::optional<RecomputeChoice> best; ///< within the limits
    int64_t bound = 0;                   ///< no choice is below
    int64_t enough = 0;                  ///< choices that cost as much, or more, are of no use
    int64_t tolerance = 0;               ///< a choice is good enough if none costs so much less
  };
  ChoiceSearch(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks, ChoiceStates &states,
               const ChoicePrices &prices, Known known);

  /// The best choice found; its `minCost` is its cost if it is optimal. None if there is none below `enough`. If labels
  /// were dropped and none was found, its cost is -1.
  std::optional<RecomputeChoice> run();

private:
  /// Peaks that are one at a place.
  struct PeakGroup {
    unsigned peak = 0;    ///< one of them
    unsigned earlier = 0; ///< the group at the place before
    __int128 price = 0;   ///< of all of them
    int64_t most = 0;     ///< bytes that the undecided values can have
  };
  struct Label {
    int64_t cost = 0, copyNs = 0;   ///< `cost`: of recomputed values
    unsigned state = 0, before = 0; ///< `before`: the label one place later in the problem
    Fate fate = Fate::Saved;
  };
  /// Labels at a place, and the bytes left of each by group.
  struct Labels {
    std::vector<Label> all;
    std::vector<int64_t> left;
    size_t groups = 0;
    llvm::ArrayRef<int64_t> leftOf(size_t label) const { return {left.data() + label * groups, groups}; }
    Labels pick(llvm::ArrayRef<unsigned> numbers) const;
  };
  struct Decision {
    unsigned before;
    Fate fate;
  };

  void group();
  void expand(unsigned place);
  void add(Labels &next, unsigned place, unsigned number, unsigned state, Fate fate) const;
  bool isFeasible(unsigned state, llvm::ArrayRef<int64_t> left, unsigned place) const;
  std::vector<unsigned> findUndominated(const Labels &next) const;
  void prune(Labels &next, unsigned place);
  void tryCompletion(unsigned place, unsigned number);
  int64_t boundOf(const Label &label, llvm::ArrayRef<int64_t> left, unsigned place) const;
  int64_t bestCost() const { return best ? std::min(best->cost, enough) : enough; }

  const RecomputeProblem &problem;
  const std::vector<BytePeak> &peaks;
  ChoiceStates &states;
  const ChoicePrices &prices;
  std::optional<RecomputeChoice> best;
  int64_t bound, enough, tolerance;
  int64_t minDropped = std::numeric_limits<int64_t>::max(); ///< the lowest bound of labels dropped for want of room
  size_t maxLabels;                                         ///< at one place
  std::vector<std::vector<PeakGroup>> groups;               ///< by place
  std::vector<std::vector<Decision>> decisions;             ///< by place, then by label
  Labels labels;                                            ///< at the current place
};

} // namespace par
