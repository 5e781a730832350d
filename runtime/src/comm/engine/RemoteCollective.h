// The part of a communication that members on other hosts take. Between hosts nothing is shared, so each pair of
// members exchanges bytes: first what each has posted (with small operands whole), which is the meeting; then each the
// parts of operands that it needs, where they are added in member order as those of this host are. So a result does not
// depend on where members run.
#pragma once

#include "Exchange.h"
#include "Streams.h"

#include <optional>

namespace par::comm {

struct Self;
struct Membership;
struct Combination;

/// Room for what members post: reused by one communicator's collectives, which follow each other.
struct HeaderRoom {
  std::vector<std::byte> own;
  std::vector<std::vector<std::byte>> others; ///< by member
};

class RemoteCollective {
public:
  RemoteCollective(Self &self, Membership &my, uint32_t communicator);

  /// Sends what this member has posted, with its payload of `bytes` if that is small.
  void announce(std::span<const Descriptor> posted, const std::byte *payload, size_t bytes);
  /// Whether all others have announced theirs.
  bool met() const;
  std::span<const Descriptor> postedBy(uint32_t member) const;
  const std::byte *payloadOf(uint32_t member) const;

  /// Starts the exchange of operands of the unit's collective `i`.
  void begin(const Combination &combination, size_t i);
  /// Starts the exchange of reduced chunks of an all_reduce.
  void beginSpread(const Communication &c, size_t i);
  /// True if it moved.
  bool advance();
  /// Whether all that was started has ended.
  bool settled() const;
  /// Whether a member has yet to come, or to send or take something.
  bool awaits(uint32_t member) const;

private:
  /// A reduction of which some operands come over the carrier.
  struct Reducing {
    Communication c;
    std::vector<const std::byte *> sources; ///< by member; null where they come
    std::byte *out;
    std::vector<Incoming> streams; ///< by place in `away`
    size_t done = 0, bytes = 0;
    bool advance(HostCarrier &carrier, const std::vector<uint32_t> &away);
  };
  StreamEnd endOf(uint32_t member, size_t i) const;
  void send(uint32_t member, size_t i, const std::byte *from, size_t bytes);
  void receive(uint32_t member, size_t i, std::byte *to, size_t bytes);
  void reduceHere(const Combination &combination, size_t i, std::byte *out, size_t offset, size_t bytes);
  void beginAllToAll(const Combination &combination, size_t i);

  Self &self;
  Membership &my;
  uint32_t communicator;
  std::vector<HostCarrier::Ticket> headersSent, headersCome; ///< by place in `away`
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  std::vector<Reducing> reducing;
  std::vector<std::vector<std::byte>> kept; ///< copies of what is sent and overwritten at once
};

/// One send or recv with a member on another host. The receiver announces itself; the sender compares and sends.
class RemoteTransfer {
public:
  RemoteTransfer(HostCarrier &carrier, const Communication &posted, const Descriptor &mine, uint32_t peerRank);
  bool advance(HostCarrier &carrier);
  bool done() const;
  /// The receiver's post, once it has come to a sender that has not started.
  const Descriptor *theirs() const { return !started && *header ? &announced : nullptr; }
  void start() { started = true; }

private:
  bool receives, started;
  Descriptor announced;
  HostCarrier::Ticket header;
  std::optional<Outgoing> outgoing;
  std::optional<Incoming> incoming;
};

} // namespace par::comm
