// The values that forward keeps for backward, on the device or in host memory, and those that backward recomputes.
#pragma once

#include "par/Solver/Problem/ProblemText.h"

namespace par {

/// A value of a forward fragment.
struct ForwardValue {
  std::string name;
  int64_t cost = 0;             ///< ns to compute it again from its inputs
  int64_t bytes = 0;            ///< of the budget, if it is saved
  std::vector<unsigned> inputs; ///< earlier values
  bool needed = false;          ///< the backward reads it
  bool isAvailable = false;     ///< weights: available in the backward anyway
  int64_t copyNs = -1;          ///< of a copy to the host, and of one back; -1: it cannot be moved there
};

/// Bytes at one place of a backward, by what is done with each value.
struct BytePeak {
  int64_t limit = 0;
  std::vector<int64_t> saved, recomputed, moved; ///< by value
};

struct RecomputeChoice {
  std::vector<bool> saved, moved, recomputed; ///< per value; the moved ones are in host memory, not saved
  int64_t bytes = 0;                          ///< of the budget
  int64_t recomputeNs = 0;                    ///< of recomputed values, per microbatch
  int64_t copyNs = 0;                         ///< of copies to the host; those back take as long
  int64_t cost = 0; ///< `recomputeNs`, and copies that compute does not hide; -1: an argument is missing, or notFound()
  int64_t minCost = 0; ///< ns that no choice within all limits can beat

  /// No choice was found, which does not prove that there is none.
  static RecomputeChoice notFound(int64_t minCost);
  std::string toText(const struct RecomputeProblem &problem) const;
};

/// Expects the values of one forward fragment in topological order, a budget and further peaks; chooses what to save,
/// so that everything the backward needs is saved, moved to the host, available, or computed from such values, and
/// least time is lost.
///
///     problem recompute
///     budget 100                                   // bytes per microbatch in flight
///     hidden 30 60                                 // ns of compute of forward and backward, beside which copies run
///     value w cost 0 bytes 0 available
///     value x cost 0 bytes 10 needed               // an argument: saved, or nothing can be computed from it
///     value h cost 50 bytes 40 copy 20 from x w needed
///     peak 60 saved x 10 h 20 recomputed h 40      // bytes at another place; a recomputed value may count there too
///
/// An argument of the fragment is a value without inputs: it can be saved or moved, not computed again. Copies out run
/// beside forward, copies in beside backward: of each direction, what takes longer than the compute is lost.
///
/// For prices of bytes at each peak, and of copies, the best choice is a minimum cut (a closure problem: computing a
/// value again implies having its inputs). The prices are raised until limits are met (ChoicePrices.h). From there a
/// branch and bound, pruned by the Lagrangian bound, finds the optimum; where it ends at its limits, which are counts
/// and no times, `minCost` is below `cost`: the gap. A choice among 1,024 values and more is optimal to a
/// thousandth of the time of all of them.
struct RecomputeProblem {
  int64_t budget = 0;
  int64_t hiddenForward = 0, hiddenBackward = 0; ///< ns of copies that compute hides
  std::vector<ForwardValue> values;
  std::vector<BytePeak> peaks; ///< beside the budget

  static llvm::Expected<RecomputeProblem> parse(ProblemText &text);
  std::string toText() const;
  /// Fails on a malformed problem: an input that is not an earlier value, or a peak without all values.
  llvm::Error check() const;
  /// Fails if no choice is within all limits.
  llvm::Expected<RecomputeChoice> solve() const;
  /// The bytes of the budget that no choice is below, by a minimum cut; 0 without a needed value.
  int64_t minBytes() const;
  /// A choice of so few bytes, the cheapest of these; the peaks are not looked at.
  RecomputeChoice smallest() const;
  /// The choice that is cheapest if a recomputed ns and a saved byte of the budget cost so much, without limits. The
  /// choices at rising prices of a byte are the front of bytes against ns, as far as it is convex.
  RecomputeChoice cheapestAt(int64_t perNs, int64_t perByte) const;
  /// All that is needed can be had, and the figures are right and within all limits.
  llvm::Error verify(const RecomputeChoice &choice) const;

  /// The least cost of all choices, or -1 if none fits; for up to about 16 values, of which few can be moved.
  int64_t solveExhaustively() const;

  /// Completes a choice that keeps these: the recomputed values, bytes and cost. Kept values that nothing needs are
  /// dropped. `moved` may be empty.
  RecomputeChoice evaluate(const std::vector<bool> &saved, const std::vector<bool> &moved = {}) const;
  /// The budget, then `peaks`.
  std::vector<BytePeak> allPeaks() const;
  /// Whether the choice is within the limits of all these.
  bool fits(const RecomputeChoice &choice, const std::vector<BytePeak> &peaks) const;
  /// The ns that are lost with so many ns of copies each way.
  int64_t unhidden(int64_t copyNs) const {
    return std::max<int64_t>(copyNs - hiddenForward, 0) + std::max<int64_t>(copyNs - hiddenBackward, 0);
  }
};

/// Bytes of a choice at a peak.
int64_t bytesAt(const BytePeak &peak, const RecomputeChoice &choice);

} // namespace par
