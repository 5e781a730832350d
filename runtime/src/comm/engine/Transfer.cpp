// Send and recv. The sender posts where its bytes are; the receiver copies them and says so. A channel holds one
// transfer at a time: the next one of the same direction is posted when the last has been taken.
#include "Engine.h"
#include "par/messages/CommMessages.h"

using namespace par;
using namespace par::comm;

uint32_t Transfer::peerRank(const Self &self) const {
  return self.memberships[posted.communicator].members->ranks[posted.peer];
}

bool Transfer::advance(Self &self) {
  Membership &my = self.memberships[posted.communicator];
  bool sends = posted.op == format::Op::Send;
  if (stage == Stage::begin) {
    number = ++(sends ? my.sent : my.received)[posted.peer];
    stage = Stage::post;
  }
  if (self.isAway(peerRank(self)))
    return advanceAway(self);
  return sends ? advanceSend(self, my.area.channel(my.self, posted.peer))
               : advanceRecv(self, my.area.channel(posted.peer, my.self));
}

// One at a time in each direction, as in a channel.
bool Transfer::advanceAway(Self &self) {
  Membership &my = self.memberships[posted.communicator];
  HostCarrier &carrier = *self.fabric->carrier;
  uint64_t &ended = (posted.op == format::Op::Send ? my.sentAway : my.receivedAway)[posted.peer];
  bool moved = false;
  if (stage == Stage::post && ended + 1 == number) {
    remote = std::make_unique<RemoteTransfer>(carrier, posted, descriptorOf(self, posted), peerRank(self));
    stage = Stage::end;
    moved = true;
  }
  if (stage != Stage::end)
    return moved;
  if (const Descriptor *theirs = remote->theirs()) {
    compare(self, descriptorOf(self, posted), self.rank, *theirs, peerRank(self));
    remote->start();
  }
  moved |= remote->advance(carrier);
  if (remote->done()) {
    ++ended;
    remote.reset();
    stage = Stage::done;
    moved = true;
  }
  return moved;
}

void Transfer::compare(const Self &self, const Descriptor &sent, uint32_t sender, const Descriptor &received,
                       uint32_t receiver) const {
  if (sent.tag != received.tag || sent.n != received.n || sent.type != received.type)
    throw Mismatch(say(Sentence::mismatch, self.memberships[posted.communicator].members->name, describe(sent, sender),
                       describe(received, receiver)));
}

bool Transfer::advanceSend(Self &self, Channel &channel) {
  bool moved = false;
  if (stage == Stage::post && channel.received.load() + 1 == number) {
    channel.descriptor = descriptorOf(self, posted);
    channel.sent.store(number);
    (*self.fabric->sharedState)[peerRank(self)].ring();
    stage = Stage::end;
    moved = true;
  }
  if (stage == Stage::end && channel.received.load() >= number) {
    stage = Stage::done;
    moved = true;
  }
  return moved;
}

bool Transfer::advanceRecv(Self &self, Channel &channel) {
  if (stage != Stage::post || channel.sent.load() != number)
    return false;
  const Descriptor theirs = channel.descriptor, mine = descriptorOf(self, posted);
  compare(self, theirs, peerRank(self), mine, self.rank);
  if (posted.n)
    std::memcpy(posted.out, self.arena(peerRank(self)) + theirs.in, posted.n * format::sizeOf(posted.type));
  channel.received.store(number);
  (*self.fabric->sharedState)[peerRank(self)].ring();
  stage = Stage::done;
  return true;
}
