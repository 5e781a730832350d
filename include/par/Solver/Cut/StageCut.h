// The pipeline stage of each node.
#pragma once

#include "par/Solver/Problem/ProblemText.h"
#include <optional>

namespace par {

/// A forward op, or a group of ops that stay together.
struct CutNode {
  std::string name;
  int64_t forward = 0;  ///< ns per microbatch
  int64_t backward = 0; ///< ns per microbatch
  int64_t weights = 0;  ///< bytes held once: parameters that only it uses, their gradients and states
  int64_t saved = 0;    ///< bytes kept per microbatch in flight for the backward
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
  int64_t step = 0;               ///< ns: (m - 1) * largest stage + sum of stages + transfers
  int64_t lowerBound = 0;         ///< ns, a lower bound for all cuts
  bool exact = false;             ///< proved optimal: all downsets were searched

  std::string toText(const struct StageCutProblem &problem) const;
};

/// Expects a DAG with costs; gives every node a stage, monotone along the edges, no stage empty, each within
/// its memory limit, so that the estimated step of 1f1b or gpipe is shortest (their makespan and bubble are
/// equal).
///
///     problem stage_cut
///     stages 2
///     microbatches 4
///     in_flight 2 1                  // per stage; min(m, p - s) if left out, as in 1f1b
///     limit 4096 4096                // bytes per stage; none if left out
///     width 15 1                     // ranks of each stage; all alike, and in the figures, if left out
///     link latency 100 bandwidth 10  // ns, bytes per microsecond; 0 bandwidth: only the latency counts
///     link into 1 latency 900 bandwidth 2  // into stage 1, from stage 0; `link` if left out
///     node a forward 10 backward 20 weights 64 saved 16
///     node b forward 10              // backward: twice the forward
///     value x bytes 8 from a to b
///     weight w bytes 64 held 192 to a b
///
/// The solution is optimal where the DAG has at most `maxDownsets` downsets (every DAG of up to 10 nodes,
/// long chains); beyond, it is the best cut along the prefixes of three topological orders, improved by
/// moving single nodes, and `exact` is false.
struct StageCutProblem {
  unsigned stages = 1;
  unsigned microbatches = 1;
  std::vector<int64_t> inFlight, limit, width;
  CutLink link;
  std::vector<CutLink> into; ///< of each stage; `link` if empty
  std::vector<CutNode> nodes;
  std::vector<CutValue> values;
  unsigned maxDownsets = 2000;

  static llvm::Expected<StageCutProblem> parse(ProblemText &text);
  std::string toText() const;
  /// Fails on a malformed problem: fewer nodes than stages, lists that are not one a stage, indices out of range, a
  /// cycle.
  llvm::Error check() const;
  llvm::Expected<StageCut> solve() const;
  /// Stages are in range, monotone, not empty, within their limits, and the figures are right.
  llvm::Error verify(const StageCut &cut) const;

  /// The best of all assignments, or none if none fits; for up to about 12 nodes.
  std::optional<StageCut> solveExhaustively() const;

  /// The figures of an assignment, whether it is legal or not.
  StageCut evaluate(std::vector<unsigned> stageOf) const;
  /// Every value flows to the same or a later stage, no stage is empty, all limits hold.
  bool isLegal(const StageCut &cut) const;
  /// ns of one value over the link into a stage, there and back. A link that skips stages counts at its end.
  int64_t linkTime(const CutValue &value, unsigned stage) const;
  int64_t nodeTime(unsigned node) const { return nodes[node].forward + nodes[node].backward; }
  /// A stage's share of the time, or of the bytes, of its nodes.
  int64_t shareOf(unsigned stage, int64_t all) const {
    return width.empty() ? all : (all + width[stage] - 1) / width[stage];
  }
  unsigned inFlightOf(unsigned stage) const;
};

} // namespace par
