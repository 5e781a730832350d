// The values that forward keeps for backward, and those that backward recomputes.
#pragma once

#include "par/Solver/Problem/ProblemText.h"

namespace par {

/// A value of a forward fragment.
struct ForwardValue {
  std::string name;
  int64_t cost = 0;             ///< ns to compute it again from its inputs
  int64_t bytes = 0;            ///< bytes to keep it from forward to backward, for one microbatch
  std::vector<unsigned> inputs; ///< earlier values
  bool needed = false;          ///< the backward reads it
  bool isAvailable = false;     ///< weights: available in the backward anyway
};

struct RecomputeChoice {
  std::vector<bool> saved, recomputed; ///< per value
  int64_t bytes = 0;                   ///< of saved values
  int64_t cost = 0;                    ///< ns of recomputed values, per microbatch
  int64_t minCost = 0;                 ///< ns that no choice within the budget can beat

  std::string toText(const struct RecomputeProblem &problem) const;
};

/// Expects the values of one forward fragment in topological order and a budget; chooses what to save, so
/// that everything the backward needs is saved, available, or computed from such values, and least is
/// computed again.
///
///     problem recompute
///     budget 100                                   // bytes per microbatch in flight
///     value w cost 0 bytes 0 available
///     value x cost 0 bytes 10 needed               // an argument: saved, or nothing can be computed from it
///     value h cost 50 bytes 40 from x w needed
///
/// An argument of the fragment is a value without inputs: it can be saved, not computed again.
///
/// For a price per saved byte the best choice is a minimum cut (a closure problem: computing a value again
/// implies having its inputs); the price is raised until the budget is met, and what the budget then leaves
/// is filled by single values. From there a branch and bound, pruned by the Lagrangian bound, finds the optimum; where
/// it ends at its limits, which are counts and no times, `minCost` is below `cost`: the gap.
struct RecomputeProblem {
  int64_t budget = 0;
  std::vector<ForwardValue> values;

  static llvm::Expected<RecomputeProblem> parse(ProblemText &text);
  std::string toText() const;
  /// Fails on a malformed problem: an input that is not an earlier value.
  llvm::Error check() const;
  llvm::Expected<RecomputeChoice> solve() const;
  /// The saved bytes that no choice is below, by a minimum cut; 0 without a needed value.
  int64_t minBytes() const;
  /// All that is needed can be had, and the figures are right and within the budget.
  llvm::Error verify(const RecomputeChoice &choice) const;

  /// The least cost of all choices, or -1 if none fits; for up to about 16 values.
  int64_t solveExhaustively() const;

  /// Completes a choice that saves these: the recomputed values, bytes and cost. Saved values that nothing needs are
  /// dropped; `cost` is -1 if an argument is missing.
  RecomputeChoice evaluate(std::vector<bool> saved) const;
};

} // namespace par
