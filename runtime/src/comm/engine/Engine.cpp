// One rank's queues.
#include "Engine.h"
#include "comm/shared/Diagnosis.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <sched.h>

using namespace par;
using namespace par::comm;
using format::CollKind;
using format::Op;

Endpoint::~Endpoint() = default;

std::string_view par::comm::wordOf(const Descriptor &descriptor) {
  return descriptor.op == Op::Coll ? format::toString(descriptor.kind) : format::toString(descriptor.op);
}

std::string par::comm::describe(const Descriptor &d, uint32_t rank) {
  std::string text = std::string(d.id) + " of rank " + std::to_string(rank) + " is " + std::string(wordOf(d));
  if (d.op == Op::Coll &&
      (d.kind == CollKind::AllReduce || d.kind == CollKind::ReduceScatter || d.kind == CollKind::Reduce))
    text += " " + std::string(format::toString(d.reduction));
  text += " of " + std::to_string(d.n) + " " + std::string(format::toString(d.type));
  if (d.op == Op::Coll && (d.kind == CollKind::Broadcast || d.kind == CollKind::Reduce))
    text += " at root " + std::to_string(d.peer);
  return text + " with tag " + std::to_string(d.tag);
}

Descriptor par::comm::descriptorOf(const Self &self, const Communication &c) {
  Descriptor d;
  const std::byte *arena = self.arena(self.rank);
  d.tag = c.tag;
  d.n = c.n;
  d.in = c.in ? static_cast<const std::byte *>(c.in) - arena : 0;
  d.out = c.out ? static_cast<const std::byte *>(c.out) - arena : 0;
  d.peer = c.peer;
  d.op = c.op;
  d.kind = c.kind;
  d.reduction = c.reduction;
  d.type = c.type;
  std::strncpy(d.id, c.id, sizeof d.id - 1);
  return d;
}

uint64_t par::comm::sharesOf(const Communication &c, uint64_t members, uint64_t self) {
  uint64_t bytes = c.n * format::sizeOf(c.type);
  if (c.op != Op::Coll)
    return c.op == Op::Send ? bytes * members : 0;
  if (c.kind == CollKind::AllReduce)
    return 2 * (members - 1) * bytes;
  if (c.kind == CollKind::Broadcast)
    return self == c.peer ? (members - 1) * bytes * members : 0;
  if (c.kind == CollKind::Reduce)
    return self == c.peer ? 0 : bytes * members;
  return (members - 1) * bytes * members;
}

namespace {

struct Unit {
  std::vector<CollectiveRendezvous> meetings;
  std::vector<Transfer> transfers;

  bool advance(Self &self) {
    bool moved = false;
    for (CollectiveRendezvous &meeting : meetings)
      moved |= meeting.advance(self);
    for (Transfer &transfer : transfers)
      moved |= transfer.advance(self);
    return moved;
  }
  bool done() const {
    return std::all_of(meetings.begin(), meetings.end(), [](const CollectiveRendezvous &m) { return m.done(); }) &&
           std::all_of(transfers.begin(), transfers.end(), [](const Transfer &t) { return t.done(); });
  }
};

struct Queue {
  std::deque<Unit> units;
  uint64_t posted = 0, finished = 0;
};

/// Elements of the operands of a communication, for bounds.
struct Extent {
  uint64_t in = 0, out = 0;
};

Extent extentOf(const Communication &c, uint64_t members) {
  if (c.op == Op::Send)
    return {c.n, 0};
  if (c.op == Op::Recv)
    return {0, c.n};
  bool gathers = c.kind == CollKind::AllGather, scatters = c.kind == CollKind::ReduceScatter;
  if (c.kind == CollKind::AllToAll || (c.in == c.out && (gathers || scatters)))
    return {members * c.n, members * c.n};
  return {scatters ? members * c.n : c.n, gathers ? members * c.n : c.n};
}

class Engine final : public Endpoint {
public:
  Engine(std::shared_ptr<const Fabric> fabric, uint32_t rank);
  ~Engine() override;

  uint32_t rank() const override { return self.rank; }
  uint32_t world() const override { return self.fabric->sharedState->world(); }
  std::span<std::byte> arena() override { return self.fabric->arenas[self.rank]; }
  Operation post(uint32_t queue, std::span<const Communication> unit) override;
  bool poll() override;
  bool done(Operation operation) const override {
    return operation.number == 0 || queues[operation.queue].finished >= operation.number;
  }
  using Endpoint::wait;
  void wait(const std::function<bool()> &finished, const std::function<bool()> &also) override;
  std::vector<uint32_t> waitingFor() const override { return waiting().ranks; }
  uint64_t sentBytes(uint32_t communicator) const override;
  uint64_t sentBytes() const override;

private:
  void check(uint32_t queue, const Communication &c);
  void checkOperand(const Communication &c, const void *pointer, uint64_t elements) const;
  Waiting waiting() const;
  bool nap(const std::function<bool()> &finished, const std::function<bool()> &also);

  Self self;
  std::vector<Queue> queues;
  int64_t lastIdle = 0; ///< when idle tenths of a second were last counted
};

/// Nanoseconds that a waiting rank sleeps, at most.
constexpr int64_t longNap = 100'000'000, carrierNap = 200'000;

} // namespace

Engine::Engine(std::shared_ptr<const Fabric> fabric, uint32_t rank) : queues(format::maxQueues) {
  self.fabric = std::move(fabric);
  self.rank = rank;
  for (size_t i = 0; i < self.fabric->table.size(); ++i) {
    Membership my;
    my.members = &self.fabric->table[i];
    my.area = self.fabric->areas[i];
    auto it = std::find(my.members->ranks.begin(), my.members->ranks.end(), rank);
    my.member = my.members->used && it != my.members->ranks.end();
    my.self = uint32_t(it - my.members->ranks.begin());
    my.sent.resize(my.area.size);
    my.received.resize(my.area.size);
    my.sentAway.resize(my.area.size);
    my.receivedAway.resize(my.area.size);
    for (uint32_t q = 0; q < my.area.size; ++q)
      if (self.isAway(my.members->ranks[q]))
        my.away.push_back(q);
    my.local = my.area.size - uint32_t(my.away.size());
    self.memberships.push_back(std::move(my));
  }
}

// The carrier is closed with all ranks, so not by one that leaves because of an error.
Engine::~Engine() {
  if (!self.fabric->carrier || std::uncaught_exceptions() > 0 || self.fabric->sharedState->aborted())
    return;
  try {
    self.fabric->carrier->close();
  } catch (const std::exception &error) {
    printLine(std::string("warning: ") + error.what());
  }
}

void Engine::checkOperand(const Communication &c, const void *pointer, uint64_t elements) const {
  std::span<std::byte> arena = self.fabric->arenas[self.rank];
  uint64_t size = format::sizeOf(c.type), begin = uintptr_t(pointer) - uintptr_t(arena.data());
  if (elements == 0)
    return;
  if (begin > arena.size() || elements > (arena.size() - begin) / size)
    throw std::invalid_argument(say(Sentence::outsideArena, c.id, elements, format::toString(c.type), arena.size()));
}

void Engine::check(uint32_t queue, const Communication &c) {
  if (c.communicator >= self.memberships.size() || !self.memberships[c.communicator].member)
    throw std::invalid_argument(say(Sentence::notAMember, c.id, self.rank, c.communicator));
  Membership &my = self.memberships[c.communicator];
  const std::string &name = my.members->name;
  if (my.queue >= 0 && my.queue != int64_t(queue))
    throw std::invalid_argument(say(Sentence::otherQueue, c.id, name, my.queue, queue));
  if (c.peer >= my.area.size || (c.op != Op::Coll && c.peer == my.self))
    throw std::invalid_argument(say(Sentence::noPeer, c.id, c.peer, name, my.area.size, my.self));
  bool inPlace = c.kind == CollKind::AllReduce || c.kind == CollKind::Broadcast || c.kind == CollKind::Reduce;
  if (c.op == Op::Coll && inPlace && c.in != c.out)
    throw std::invalid_argument(say(Sentence::inPlaceOnly, c.id, format::toString(c.kind)));
  if (c.n > UINT64_MAX / 8 / my.area.size)
    throw std::invalid_argument(say(Sentence::countTooLarge, c.id, c.n));
  Extent extent = extentOf(c, my.area.size);
  checkOperand(c, c.in, extent.in);
  checkOperand(c, c.out, extent.out);
  my.queue = queue;
}

Operation Engine::post(uint32_t queue, std::span<const Communication> unit) {
  if (queue >= queues.size() || unit.empty() || unit.size() > format::maxGroup)
    throw std::invalid_argument(say(Sentence::badGroup, queue, queues.size(), unit.size(), format::maxGroup));
  for (const Communication &c : unit)
    check(queue, c);
  Unit entry;
  for (const Communication &c : unit) {
    Membership &my = self.memberships[c.communicator];
    my.shares += sharesOf(c, my.area.size, my.self);
    if (c.op != Op::Coll) {
      entry.transfers.emplace_back(c);
      continue;
    }
    auto it = std::find_if(entry.meetings.begin(), entry.meetings.end(),
                           [&](const CollectiveRendezvous &meeting) { return meeting.on() == c.communicator; });
    if (it == entry.meetings.end())
      it = entry.meetings.insert(it, CollectiveRendezvous(c.communicator));
    it->add(c);
  }
  queues[queue].units.push_back(std::move(entry));
  return {queue, ++queues[queue].posted};
}

bool Engine::poll() {
  if (self.fabric->sharedState->aborted())
    throw Aborted(self.fabric->sharedState->message());
  bool moved = self.fabric->carrier && self.fabric->carrier->poll();
  try {
    for (Queue &queue : queues)
      while (!queue.units.empty()) {
        moved |= queue.units.front().advance(self);
        if (!queue.units.front().done())
          break;
        queue.units.pop_front();
        ++queue.finished;
      }
  } catch (const Mismatch &mismatch) {
    self.fabric->sharedState->abort(exitRankLost, mismatch.what());
    throw;
  }
  return moved;
}

Waiting Engine::waiting() const {
  Waiting result;
  auto note = [&](const Communication &c, std::vector<uint32_t> ranks) {
    if (ranks.empty())
      return;
    if (result.kind.empty()) {
      result.kind = c.op == Op::Coll ? format::toString(c.kind) : format::toString(c.op);
      result.instruction = c.id;
    }
    result.ranks.insert(result.ranks.end(), ranks.begin(), ranks.end());
  };
  for (const Queue &queue : queues) {
    if (queue.units.empty())
      continue;
    for (const CollectiveRendezvous &meeting : queue.units.front().meetings)
      if (!meeting.done())
        note(meeting.first(), meeting.missing(self));
    for (const Transfer &transfer : queue.units.front().transfers)
      if (!transfer.done())
        note(transfer.what(), {transfer.peerRank(self)});
  }
  return result;
}

// Says that it sleeps, looks once more, and only then sleeps: a change made after the look finds the rank
// asleep and rings.
bool Engine::nap(const std::function<bool()> &finished, const std::function<bool()> &also) {
  RankState &sharedState = (*self.fabric->sharedState)[self.rank];
  sharedState.wait(waiting());
  sharedState.asleep.store(1);
  uint32_t seen = sharedState.bell.load();
  bool moved = false;
  try {
    moved = poll();
    moved = (also && also()) || moved;
    if (!moved && !finished()) {
      // No bell rings for what comes over the carrier.
      sharedState.sleep(seen, self.fabric->carrier ? carrierNap : longNap);
      if (now() - lastIdle >= longNap) {
        lastIdle = now();
        sharedState.idle.fetch_add(1, std::memory_order_relaxed);
      }
      if (std::optional<std::string> text = deadlock(*self.fabric->sharedState))
        throw Mismatch(*text);
    }
  } catch (...) {
    sharedState.asleep.store(0);
    throw;
  }
  sharedState.asleep.store(0);
  return moved;
}

void Engine::wait(const std::function<bool()> &finished, const std::function<bool()> &also) {
  constexpr unsigned pauses = 64, yields = 100;
  RankState &sharedState = (*self.fabric->sharedState)[self.rank];
  bool noted = false;
  for (unsigned idle = 0; !finished(); ++idle) {
    bool moved = false;
    if (idle <= pauses + yields) {
      moved = poll();
      moved = (also && also()) || moved;
    } else {
      noted = true;
      moved = nap(finished, also);
    }
    if (moved) {
      idle = 0;
      sharedState.idle.store(0, std::memory_order_relaxed);
    } else if (idle < pauses)
      __builtin_ia32_pause();
    else if (idle < pauses + yields)
      sched_yield();
  }
  if (noted)
    sharedState.run();
}

uint64_t Engine::sentBytes(uint32_t communicator) const {
  const Membership &my = self.memberships.at(communicator);
  return my.area.size ? my.shares / my.area.size : 0; // none of one that is not used
}

uint64_t Engine::sentBytes() const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < self.memberships.size(); ++i)
    bytes += sentBytes(i);
  return bytes;
}

std::unique_ptr<Endpoint> par::comm::makeEndpoint(std::shared_ptr<const Fabric> fabric, uint32_t rank) {
  return std::make_unique<Engine>(std::move(fabric), rank);
}
