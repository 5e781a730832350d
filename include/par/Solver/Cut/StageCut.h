// The pipeline stage of each node.
#pragma once

#include "par/Solver/Problem/ProblemText.h"
#include <optional>

namespace par {

/// ns of a node, or of a stage.
struct CutWork {
  int64_t forward = 0;  ///< per microbatch
  int64_t backward = 0; ///< per microbatch: all of it
  int64_t gradient = 0; ///< the part of it that is weight gradients, which a schedule may run later
  int64_t update = 0;   ///< once a step

  CutWork &operator+=(const CutWork &other);
  CutWork &operator-=(const CutWork &other);
  int64_t microbatch() const { return forward + backward; }
  bool operator==(const CutWork &) const = default;
};

/// A forward op, or a group of ops that stay together.
struct CutNode {
  std::string name;
  CutWork work;
  int64_t weights = 0; ///< bytes held once: parameters that only it uses, their gradients and states
  int64_t saved = 0;   ///< bytes kept per microbatch in flight for the backward
};

/// A value that crosses stages if its nodes are apart: an activation (from a node) or a weight that several nodes share
/// (from none). It travels from user to next user, so that one link reaches each stage that uses it.
struct CutValue {
  std::string name;
  int64_t bytes = 0;                ///< per link: forwards, and as much backwards
  int64_t held = 0;                 ///< weights: bytes on every stage that uses it
  std::optional<unsigned> producer; ///< absent: a weight, which lives on the first stage that uses it
  std::vector<unsigned> users;
};

/// Two nodes that share kernels: a stage that has both takes less than the sum of the two.
struct CutBond {
  unsigned first = 0, second = 0;
  CutWork less;
};

/// The time of a transfer; 0 bandwidth: only the latency counts.
struct CutLink {
  int64_t latency = 0;   ///< ns
  int64_t bandwidth = 0; ///< bytes per microsecond
};

struct StageCut {
  std::vector<unsigned> stageOf;  ///< per node
  std::vector<int64_t> stageTime; ///< ns per stage and microbatch, forward and backward
  std::vector<int64_t> memory;    ///< bytes per stage
  int64_t transfers = 0;          ///< ns of all links once, both ways
  int64_t step = 0;               ///< ns: the schedule's order played with these times, updates included
  int64_t lowerBound = 0;         ///< ns, a lower bound for all cuts
  bool exact = false;             ///< proved optimal: all cuts along downsets were searched or excluded by a bound

  std::string toText(const struct StageCutProblem &problem) const;
};

/// Expects a DAG with costs; gives every node a stage, monotone along the edges, no stage empty, each within
/// its memory limit, so that the step is shortest when the schedule's order is played.
///
///     problem stage_cut
///     stages 2
///     schedule 1f1b                  // of the order_table problem; 1f1b if left out
///     devices 2                      // stages if left out; else each device has several, as the schedule places them
///     microbatches 4
///     in_flight 2 1                  // per stage; min(m, p - s) if left out, as in 1f1b
///     limit 4096 4096                // bytes per stage; none if left out
///     width 15 1                     // ranks of each stage; all alike, and in the figures, if left out
///     link latency 100 bandwidth 10  // ns, bytes per microsecond; 0 bandwidth: only the latency counts
///     link into 1 latency 900 bandwidth 2  // into stage 1, from stage 0; `link` if left out
///     blocking                       // a transfer takes the engines of both devices; beside compute if left out
///     node a forward 10 backward 20 gradient 9 update 5 weights 64 saved 16
///     node b forward 10              // backward: twice the forward
///     bond a b forward 2 backward 1  // ns less on a stage that has both
///     value x bytes 8 from a to b
///     weight w bytes 64 held 192 to a b
///
/// The solution is optimal where the DAG has at most `maxDownsets` downsets (every DAG of up to 10 nodes, long chains)
/// and the bounds leave few enough cuts to play; else it is the best cut along the prefixes of three topological
/// orders, improved by moving single nodes and whole borders, and `exact` is false.
struct StageCutProblem {
  std::string schedule = "1f1b";
  unsigned stages = 1;
  unsigned devices = 0; ///< 0: as many as stages
  unsigned microbatches = 1;
  std::vector<int64_t> inFlight, limit, width;
  CutLink link;
  std::vector<CutLink> into; ///< of each stage; `link` if empty
  bool blocking = false;
  std::vector<CutNode> nodes;
  std::vector<CutValue> values;
  std::vector<CutBond> bonds;
  unsigned maxDownsets = 2000;

  static llvm::Expected<StageCutProblem> parse(ProblemText &text);
  std::string toText() const;
  /// Fails on a malformed problem: fewer nodes than stages, lists that are not one a stage, indices out of range, a
  /// cycle, a schedule that is unknown or has no such stages.
  llvm::Error check() const;
  llvm::Expected<StageCut> solve() const;
  /// Stages are in range, monotone, not empty, within their limits, and the figures are right.
  llvm::Error verify(const StageCut &cut) const;

  /// The best of all assignments, or none if none fits; for up to about 12 nodes.
  std::optional<StageCut> solveExhaustively() const;

  /// The figures of an assignment, whether it is legal or not. Expects a problem that `check` accepts.
  StageCut evaluate(std::vector<unsigned> stageOf) const;
  /// Every value flows to the same or a later stage, no stage is empty, all limits hold.
  bool isLegal(const StageCut &cut) const;
  /// ns of one value over the link into a stage, there and back. A link that skips stages counts at its end.
  int64_t linkTime(const CutValue &value, unsigned stage) const;
  /// A stage's share of the time, or of the bytes, of its nodes.
  int64_t shareOf(unsigned stage, int64_t all) const {
    return width.empty() ? all : (all + width[stage] - 1) / width[stage];
  }
  CutWork shareOf(unsigned stage, const CutWork &all) const;
  unsigned inFlightOf(unsigned stage) const;
  unsigned numDevices() const { return devices ? devices : stages; }
};

} // namespace par
