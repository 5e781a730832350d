// The memory in which communications meet. For every communicator of the table: each member's posted operands, a
// counter of arrivals, room for small payloads, and a channel for each ordered pair of members. Every rank computes the
// same layout from the same table; all of it begins zeroed.
#pragma once

#include "comm/carrier/HostCarrier.h"
#include "comm/shared/SharedState.h"
#include "par/comm/engine/Communicator.h"

#include <memory>

namespace par::comm {

/// Collectives whose contributions fit this many bytes are copied here and meet once instead of two or three
/// times: with more ranks than cores a meeting costs more than copying 32 KiB.
inline constexpr size_t smallPayload = 32 << 10;

/// A posted communication as the other members see it.
struct Descriptor {
  uint64_t tag = 0, n = 0;
  uint64_t in = 0, out = 0; ///< offsets in the arena of the posting rank
  uint32_t peer = 0;
  format::Op op = format::Op::Coll;
  format::CollKind kind = format::CollKind::AllReduce;
  format::Reduction reduction = format::Reduction::Sum;
  format::DType type = format::DType::F32;
  char id[72] = {};
};

/// Posted by a member: collectives of one unit, by parity of the round (a member at round k + 1 knows that all have
/// finished round k - 1).
struct alignas(64) MemberArea {
  std::atomic<uint64_t> arrivals; ///< for diagnoses only
  uint32_t count[2];
  Descriptor posted[2][format::maxGroup];
};

/// One direction between two members. Numbers of the last transfer posted, and taken.
struct alignas(64) Channel {
  std::atomic<uint64_t> sent;
  Descriptor descriptor;
  alignas(64) std::atomic<uint64_t> received;
};

/// One communicator's part, as pointers into the shared memory; of one that is not used there is none.
struct CommunicatorArea {
  std::atomic<uint64_t> *arrivals = nullptr; ///< of all members at all meetings so far
  MemberArea *members = nullptr;
  std::byte *payload = nullptr; ///< [parity][member][smallPayload]
  Channel *channels = nullptr;  ///< [sender][receiver]
  uint32_t size = 0;

  std::byte *payloadOf(uint64_t round, uint32_t member) const {
    return payload + ((round & 1) * size + member) * smallPayload;
  }
  Channel &channel(uint32_t sender, uint32_t receiver) const { return channels[sender * size + receiver]; }
};

/// Bytes that the areas of a table take.
size_t exchangeBytes(std::span<const Members> table);
/// The areas in `memory`, in the order of the table.
std::vector<CommunicatorArea> exchangeAreas(std::span<const Members> table, std::byte *memory);

/// Shared by the endpoints of one process.
struct Fabric {
  SharedState *sharedState = nullptr;
  std::vector<Members> table;
  std::vector<CommunicatorArea> areas;
  std::vector<std::span<std::byte>> arenas; ///< by rank, as mapped here
  std::vector<std::shared_ptr<void>> mappings;
  std::vector<bool> away;               ///< by rank: on another host; empty where none is
  std::shared_ptr<HostCarrier> carrier; ///< to ranks that are away
};

/// The end of `rank`.
std::unique_ptr<Endpoint> makeEndpoint(std::shared_ptr<const Fabric> fabric, uint32_t rank);

} // namespace par::comm
