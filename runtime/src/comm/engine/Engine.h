// One rank's state machines. A unit at the head of a queue is a set of state machines that move when polled: one
// CollectiveRendezvous for all collectives of the unit on one communicator, one Transfer for each send or recv.
#pragma once

#include "Exchange.h"
#include "RemoteCollective.h"

#include <algorithm>

namespace par::comm {

/// This rank's view of one communicator.
struct Membership {
  bool isAway(uint32_t other) const { return !away.empty() && std::binary_search(away.begin(), away.end(), other); }

  const Members *members = nullptr;
  CommunicatorArea area{};
  uint32_t self = 0; ///< my member index
  bool member = false;
  int64_t queue = -1;                           ///< the queue on which it was first used
  uint64_t rounds = 0;                          ///< meetings begun
  uint64_t arrivals = 0;                        ///< times that I have arrived somewhere
  std::vector<uint64_t> sent, received;         ///< transfers begun, by peer
  uint64_t shares = 0;                          ///< bytes sent times members
  uint32_t local = 0;                           ///< members on this host
  std::vector<uint32_t> away;                   ///< members on other hosts, in order
  std::vector<uint64_t> sentAway, receivedAway; ///< transfers with them that have ended, by member
  HeaderRoom headers;
};

/// A rank's facts that its state machines need.
struct Self {
  std::shared_ptr<const Fabric> fabric;
  uint32_t rank = 0;
  std::vector<Membership> memberships; ///< by index in the table

  std::byte *arena(uint32_t otherRank) const { return fabric->arenas[otherRank].data(); }
  bool isAway(uint32_t otherRank) const { return !fabric->away.empty() && fabric->away[otherRank]; }
};

/// Tags of the messages of one communicator between two ranks: what they carry.
enum class CarrierTag : uint32_t {
  collectiveHeader,
  transferHeader,
  transfer,
  collective /* of the unit's first one */
};
inline constexpr uint32_t tagsOfCommunicator = 128;
static_assert(uint32_t(CarrierTag::collective) + format::maxGroup <= tagsOfCommunicator);
inline uint32_t carrierTag(uint32_t communicator, CarrierTag what, size_t i = 0) {
  return communicator * tagsOfCommunicator + uint32_t(what) + uint32_t(i);
}

/// The words of an error or a diagnosis: "all_reduce", "recv".
std::string_view wordOf(const Descriptor &descriptor);
/// "stage0/backward:88 of rank 3 is recv of 64 f32 with tag 7".
std::string describe(const Descriptor &descriptor, uint32_t rank);
/// Bytes that member `self` of `members` sends in a communication, times the number of members (see
/// Endpoint::sentBytes).
uint64_t sharesOf(const Communication &communication, uint64_t members, uint64_t self);
Descriptor descriptorOf(const Self &self, const Communication &communication);

/// All collectives of one unit on one communicator.
class CollectiveRendezvous {
public:
  CollectiveRendezvous(uint32_t communicator) : communicator(communicator) {}
  void add(const Communication &communication) { posted.push_back(communication); }
  uint32_t on() const { return communicator; }
  const Communication &first() const { return posted.front(); }

  /// As far as it goes; true if it moved.
  bool advance(Self &self);
  bool done() const { return stage == Stage::done; }
  std::vector<uint32_t> missing(const Self &self) const;

private:
  /// meet: all operands are known; first and second: bytes come from other hosts; spread: the reduced chunks are
  /// there; leave: all have read this rank's buffers.
  enum class Stage : uint8_t { begin, meet, first, spread, second, leave, done };

  bool mayGoOn(const Membership &my) const;
  void goOn(Self &self, Membership &my);
  size_t payloadBytes(const Membership &my) const;
  std::span<const Descriptor> postedBy(const Membership &my, uint32_t member) const;
  const std::byte *sourceOf(const Self &self, const Membership &my, size_t i, uint32_t member, size_t offset) const;
  void publish(Self &self, Membership &my);
  void arrive(Self &self, Membership &my);
  bool allHere(const Membership &my) const { return my.area.arrivals->load() >= awaited; }
  void compare(const Membership &my) const;
  void combine(const Self &self, const Membership &my);
  void spread(const Self &self, const Membership &my);

  uint32_t communicator;
  std::vector<Communication> posted;
  Stage stage = Stage::begin;
  bool small = false;   ///< contributions lie in the payload area
  bool reduces = false; ///< has an all_reduce in place, which needs one more meeting
  uint64_t round = 0, awaited = 0, ticket = 0;
  std::unique_ptr<RemoteCollective> remote; ///< the part of members on other hosts
};

/// One send or recv.
class Transfer {
public:
  explicit Transfer(const Communication &communication) : posted(communication) {}
  const Communication &what() const { return posted; }

  bool advance(Self &self);
  bool done() const { return stage == Stage::done; }
  uint32_t peerRank(const Self &self) const;

private:
  enum class Stage : uint8_t { begin, post, end, done };

  bool advanceSend(Self &self, Channel &channel);
  bool advanceRecv(Self &self, Channel &channel);
  bool advanceAway(Self &self);
  void compare(const Self &self, const Descriptor &sent, uint32_t sender, const Descriptor &received,
               uint32_t receiver) const;

  Communication posted;
  Stage stage = Stage::begin;
  uint64_t number = 0;
  std::unique_ptr<RemoteTransfer> remote;
};

} // namespace par::comm
