// Which bytes of each rank's state a neighbour holds beside it (par-run --mirror), and which rank that is.
//
//   ranks of host a: 0, 1; of host b: 2, 3; pp 2 x dp 2, so that a's are stage 0
//   state of      0  1  2  3
//   mirrored by   2  3  0  1        all of it: a stage's only replica is on the same host
//
// On one host, or with the axes the other way round, each part has a replica that is not lost with its rank, and no
// byte is mirrored. Under ZeRO only the shards are.
#pragma once

#include "KeptShares.h"

#include <optional>

namespace par::core {

/// Bytes of a rank's copy (KeptState) that its mirror holds, one range after the other.
struct MirrorRange {
  uint64_t at = 0, bytes = 0;
};

/// `whole`: all of a rank's copy; else the parts that no other rank holds.
std::vector<MirrorRange> mirrorRanges(const format::Bundle &bundle, uint32_t rank, bool whole);
uint64_t bytesOf(const std::vector<MirrorRange> &ranges);
/// The place of a part of a rank's copy in its mirror; nullopt where it is not there.
std::optional<uint64_t> placeInMirror(const std::vector<MirrorRange> &ranges, const KeptPart &part);

class MirrorPlan {
public:
  /// `hostOf`: by rank, its host.
  MirrorPlan(const format::Bundle &bundle, const std::vector<uint32_t> &hostOf);

  /// The rank that holds the mirror of `rank`: on another host where no host has more than half of the ranks.
  uint32_t neighbourOf(uint32_t rank) const { return next[rank]; }
  /// The rank whose mirror `rank` holds.
  uint32_t mirroredBy(uint32_t rank) const;
  /// Whether all of a rank's state is mirrored: replicas of its parts would be lost with its host.
  bool whole(uint32_t rank) const { return isWhole[rank]; }

private:
  std::vector<uint32_t> next;
  std::vector<bool> isWhole;
};

} // namespace par::core
