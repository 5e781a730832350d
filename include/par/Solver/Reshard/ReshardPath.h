// From one sharding to another.
#pragma once

#include "par/Costs/CostTable.h"
#include "par/Solver/Problem/ProblemText.h"
#include <map>
#include <tuple>

namespace par {

/// Axes by number: a smaller number is the more major axis of the mesh.
using AxisList = std::vector<unsigned>;

struct ReshardAxis {
  std::string name;
  int64_t size = 1;
};

/// A dim of the tensor, and the axes that shard it before and after, major first.
struct ReshardDim {
  int64_t size = 1;
  AxisList from, to;
};

/// The sharding of the value between two moves. Block i of a dim holds its elements [i * shard, (i + 1) * shard);
/// elements past the dim's size are padding. Shards may be larger than necessary, so that blocks stay aligned with
/// those of the source or the target.
struct ReshardState {
  std::vector<AxisList> axes; ///< per dim, major first
  std::vector<int64_t> shard; ///< per dim
  AxisList sums;              ///< over which it still is a sum, ascending

  /// Elements of one rank.
  int64_t elements() const;
  bool operator<(const ReshardState &other) const {
    return std::tie(axes, shard, sums) < std::tie(other.axes, other.shard, other.sums);
  }
  bool operator==(const ReshardState &other) const = default;
};

enum class ReshardKind { Slice, AllReduce, ReduceScatter, AllToAll, AllGather };
llvm::StringRef toString(ReshardKind kind);

/// One collective over all its axes at once, or a local slice on every rank.
struct ReshardMove {
  ReshardKind kind;
  AxisList axes; ///< ascending
  ReshardState after;
};

/// Cost of a path of moves, compared in this order.
struct ReshardCost {
  int64_t time = 0;  ///< ns by the hardware file: collectives, and the copies around them
  int64_t bytes = 0; ///< that a rank sends
  int64_t moves = 0;
  bool operator<(const ReshardCost &other) const {
    return std::tie(time, bytes, moves) < std::tie(other.time, other.bytes, other.moves);
  }
  ReshardCost operator+(const ReshardCost &other) const {
    return {time + other.time, bytes + other.bytes, moves + other.moves};
  }
};

struct ReshardPath {
  std::vector<ReshardMove> moves;
  ReshardCost cost;
  std::string toText(const struct ReshardProblem &problem) const;
};

/// Expects a value in one sharding; finds the cheapest sequence of moves to another. Moves:
///
/// - slice: axes that nothing lies over are appended to dims;
/// - all_reduce: axes of the sum are no longer;
/// - reduce_scatter: axes of the sum are appended to dims;
/// - all_to_all: axes that end dims are appended to other dims;
/// - all_gather: axes that end dims are taken off.
///
/// A dim that is not cut is padded so that the new blocks align with the standard ceil(n / k), or with the
/// target's; a dim that is cut can be cut further only where its shard divides.
///
///     problem reshard
///     hardware h100-sxm
///     element 4                        // bytes
///     axis dp 4
///     axis tp 2
///     dim 50257 from tp to dp tp
///     dim 768
///     sum dp                           // axes over which it is a sum, and the target is none
///     ranks 0 1 2 3 4 5 6 7            // of the mesh, the last axis' neighbours first: which are on one host
///
/// Axes that the two shardings always name together, in one order, move together. The path is the cheapest of
/// all up to `maxUnits` of those; beyond, axes are appended only where the target has them.
struct ReshardProblem {
  CostTable costs;
  int64_t element = 4;
  std::vector<ReshardAxis> axes;
  std::vector<ReshardDim> dims;
  AxisList sums;
  std::vector<int64_t> ranks; ///< in the world, of the mesh in row-major order; empty: all on one host
  unsigned maxUnits = 4;

  static llvm::Expected<ReshardProblem> parse(ProblemText &text);
  std::string toText() const;
  /// Fails on a malformed problem: an axis that occurs twice on one side, is out of range, or of size below 1; sizes
  /// below 1.
  llvm::Error check() const;
  llvm::Expected<ReshardPath> solve() const;
  /// Each move leads from state to state, the last is the target, and the figures are right.
  llvm::Error verify(const ReshardPath &path) const;

  int64_t sizeOf(const AxisList &list) const;
  /// The ranks of a collective over these axes, which ascend: the group on most hosts.
  RankGroup groupOf(const AxisList &list) const;
  mutable std::map<AxisList, RankGroup> groups; ///< those that were asked for, where `ranks` say which they are
  ReshardState source() const;
  ReshardState target() const;
  /// Success if one move of this kind leads from `before` to `after`. An independent statement of the rules that solve
  /// builds on, for verification.
  llvm::Error checkMove(ReshardKind kind, const ReshardState &before, const ReshardState &after) const;
  ReshardCost costOf(ReshardKind kind, const ReshardState &before, const ReshardState &after) const;
  /// The shards that a dim may have when it is first cut over `list`.
  std::vector<int64_t> firstShards(unsigned dim, const AxisList &list) const;
};

/// The axes that `after` has of a dim, and `before` has not; empty unless `after` begins with `before`.
AxisList appendedAxes(const AxisList &before, const AxisList &after);

} // namespace par
