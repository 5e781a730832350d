// The state of a rank whose memory is lost, from ranks that hold the same parts of the tensors.
#pragma once

#include "KeptState.h"
#include "MirrorMemory.h"

namespace par::core {

/// Bytes of one rank's copy that are the same in another one's, or in a mirror of it.
struct Transfer {
  uint32_t from = 0;
  uint64_t fromAt = 0, toAt = 0, bytes = 0;
  bool mirrored = false; ///< `fromAt` is in the mirror that the rank `from` holds
};

/// A mirror, and the rank that holds it.
struct MirrorAt {
  uint32_t holder = 0;
  HeldMirror mirror;
};

/// The way to a whole copy of one rank: all ranks find the same.
struct Transfers {
  std::vector<Transfer> all;
  std::string missing; ///< the first tensor of which no other rank holds this rank's part; "" where there is none
};

/// Takes each part from the first of the ranks `holders` that has the same rectangle of the same tensor; where none
/// has, from the rank's mirror.
Transfers transfersTo(const format::Bundle &bundle, uint32_t rank, const std::vector<uint32_t> &holders,
                      const std::optional<MirrorAt> &mirror = {});

/// For each rank the first one that holds the same parts of all tensors that training changes.
std::vector<uint32_t> firstReplicas(const format::Bundle &bundle);

/// The bytes of a mirror that this rank holds.
using ReadMirror = std::function<std::span<const std::byte>(uint32_t rank)>;

/// Collective. Sends the copies of `boundary` to the rank `to`, into its `copy`.
void sendCopy(comm::Control &control, const KeptState &kept, const Boundary &boundary, uint32_t to,
              const std::vector<Transfer> &transfers, std::span<std::byte> copy,
              const ReadMirror &readMirror = nullptr);

} // namespace par::core
