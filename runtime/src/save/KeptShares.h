// Which bytes of a rank's state are copied by which rank. Ranks that hold the same (data parallelism) and see each
// other's memory divide it: each copies a share, and any of them has the whole from all.
#pragma once

#include "par/format/Bundle.h"

#include <vector>

namespace par::core {

/// A part of a rank's state: the first slot of a buffer, which is the one that counts at a boundary.
struct KeptPart {
  const format::Tensor *tensor = nullptr;
  uint32_t buffer = 0;
  uint64_t at = 0, bytes = 0;
};
/// Whether a tensor is other than the bundle or a file of weights says once a step is made.
bool changesInTraining(const format::Tensor &tensor);
/// The parts of a rank's state: the buffers of all tensors that training changes, in the program's order.
std::vector<KeptPart> keptParts(const format::Bundle &bundle, uint32_t rank);

/// Bytes of a rank's state, and where their copy lies.
struct KeptPiece {
  uint32_t holder = 0; ///< the rank that copies them, into its memory
  uint64_t heldAt = 0; ///< in a copy there
  uint32_t part = 0;   ///< the index of the rank's part
  uint64_t at = 0;     ///< in that part
  uint64_t bytes = 0;
};

/// The pieces of one rank's state: every byte of it is in one of them.
class KeptShares {
public:
  /// `seen`: the ranks whose memory all of `seen` see, in order; `rank` is one of them.
  KeptShares(const format::Bundle &bundle, uint32_t rank, const std::vector<uint32_t> &seen);

  const std::vector<KeptPart> &parts() const { return all; }
  const std::vector<KeptPiece> &pieces() const { return found; }
  /// Bytes of the rank's state, and of a copy in a rank's memory.
  uint64_t bytes() const { return all.empty() ? 0 : all.back().at + all.back().bytes; }
  uint64_t copiedBy(uint32_t holder) const;
  /// Whether other ranks copy bytes of this rank's state.
  bool divided() const { return isDivided; }

private:
  /// The bytes that one of the ranks that share a part of the state copies.
  void addShare(uint32_t part, uint32_t holder, const std::vector<uint32_t> &sharers, uint32_t rank);

  std::vector<KeptPart> all;
  std::vector<KeptPiece> found;
  std::vector<uint64_t> copied; ///< by rank
  bool isDivided = false;
};

} // namespace par::core
