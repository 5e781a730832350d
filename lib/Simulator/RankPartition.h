// Classes of ranks that play an entry at the same times.
#pragma once

#include "par/Base/Hardware.h"
#include "par/format/Bundle.h"

namespace par {

/// An equitable partition of the ranks: those of a class run one program, and meet the same classes, in the same
/// places, over links of the same kind. One rank of each class stands for it.
struct RankPartition {
  std::vector<uint32_t> classOf;         ///< of each rank
  std::vector<uint32_t> representatives; ///< of each class: its lowest rank; ascending
  /// By communicator and group: groups of a class have members of the same classes.
  std::vector<std::vector<uint32_t>> groupClassOf;
};

/// The coarsest such partition.
RankPartition partitionRanks(const format::Bundle &bundle, const Hardware &hardware);

/// A class for each rank.
RankPartition separateRanks(const format::Bundle &bundle);

} // namespace par
