// Transfers between two shardings: the rectangle that each rank sends to each other one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace par {

/// The shards of a tensor on the members of one side: parts along each dim, and each member's part.
struct ExchangeSide {
  std::vector<int64_t> parts;              ///< along each dim
  std::vector<std::vector<int64_t>> index; ///< of each member: its part along each dim
};

/// Sends a tensor from the ranks of one sharding to the ranks of another. Shards are ceil(n/k), and along each dim the
/// shards of one side make up those of the other: two shards of 3 rows are one of 6, or the reverse. A receiver gets
/// each rectangle of its shard from one sender that holds it; if several hold it, receivers of the same part use them
/// in turn.
///
///     rows of 12: senders 0, 1 have 6 each; receivers 0 to 3 have 3 each.
///     piece 3 rows; slices at 0 and 3 of a sender's shard; groups {sender 0, receivers 0, 1}, {sender 1, receivers 2,
///     3}; a sender sends slice 0 to member 1 of its group and slice 1 to member 2; a receiver gets its only piece from
///     member 0.
///
/// All senders do the same with respect to their group, and so do all receivers, so that each side is one program. A
/// sender whose part enough others have is in no group. The last members of a group may be missing; nothing is sent to
/// them.
struct Exchange {
  struct Send {
    unsigned slice; ///< of `slices`
    unsigned peer;  ///< member of the group
  };

  std::vector<int64_t> piece;               ///< shape of one message
  std::vector<int64_t> padded;              ///< shape to which a sender's shard is padded before it is sliced
  std::vector<std::vector<int64_t>> slices; ///< where each begins in that
  std::vector<int64_t> grid; ///< pieces of a receiver along each dim; row by row they are from members 0, 1, ...
  std::vector<Send> sends;   ///< of a sender, in order
  std::vector<std::vector<unsigned>> groups; ///< members: senders by their number, receivers after all senders
  unsigned senders = 0;                      ///< of a group: its first members, one a piece

  /// Whether the shards of a dim of `size` elements in `a` parts make up those in `b` parts, or the reverse.
  static bool nests(int64_t size, int64_t a, int64_t b);
  /// None where shards of the two sides do not make up each other along some dim.
  static std::optional<Exchange> find(const std::vector<int64_t> &shape, const ExchangeSide &from,
                                      const ExchangeSide &to);
};

} // namespace par
