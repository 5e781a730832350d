// One order of communication for all ranks.
#pragma once

#include "par/Solver/Problem/ProblemText.h"

namespace par {

/// One thing that happens once for a set of ranks: a run of a fragment on its stage, a transfer, a
/// collective.
struct OrderTask {
  std::string name;
  int64_t duration = 0;        ///< ns
  std::vector<unsigned> ranks; ///< who takes part; roles will do where all ranks of a role take part
  std::vector<unsigned> after; ///< indices of tasks that must have ended
  /// Name of the compute resource; empty for communication, which has unlimited lanes in the simulated step.
  /// Tasks of one resource run one at a time in the order in which they are listed.
  std::string resource;

  bool isCommunication() const { return resource.empty(); }
};

struct GlobalOrder {
  std::vector<int64_t> start;  ///< ns, one per task
  std::vector<unsigned> order; ///< indices of all tasks by start time, topological, ties by index
  int64_t makespan = 0;

  std::string toText(const struct GlobalOrderProblem &problem) const;
};

/// Expects the tasks of one step of all ranks; gives the one order whose restriction every rank issues.
///
///     problem global_order
///     task f0 for 10 on s0 ranks 0 1
///     task t0 for 2 ranks 0 1 2 3 after f0       // no `on`: communication
///     task f1 for 10 on s1 ranks 2 3 after t0
///
/// A rank has one communication engine, rendezvous, no buffers (the weakest machine that Par runs on). Any
/// order that linearly extends the dependencies runs on it without deadlock: of the tasks not yet done, the
/// first in the order has all its predecessors done and is the next one of each of its ranks. The order by
/// start times of a simulated step is such an extension, and costs nothing: a receive stands where its data
/// appears.
struct GlobalOrderProblem {
  std::vector<OrderTask> tasks;

  static llvm::Expected<GlobalOrderProblem> parse(ProblemText &text);
  std::string toText() const;
  /// Fails on a malformed problem: an index out of range, a task without ranks, a cycle of dependencies and listed
  /// orders.
  llvm::Error check() const;
  llvm::Expected<GlobalOrder> solve() const;
  /// The order is complete and extends dependencies and resources, and one engine a rank runs it to its end.
  llvm::Error verify(const GlobalOrder &solution) const;

  /// The communications of a rank, in the order given for all.
  std::vector<unsigned> restrict(llvm::ArrayRef<unsigned> order, unsigned rank) const;
  unsigned numRanks() const;

  /// Runs the communications of each rank on one engine with rendezvous, in the order given for that rank,
  /// and compute in its listed order. Returns the tasks that never run: none if there is no deadlock.
  std::vector<unsigned> playRendezvous(llvm::ArrayRef<std::vector<unsigned>> communicationOfRank) const;
};

} // namespace par
