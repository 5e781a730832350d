// Communicators over NCCL: the world, split in table order without sharing, connected before the first step.
#include "NcclMeeting.h"
#include "NcclTypes.h"
#include "StartLimit.h"
#include "par/messages/NcclMessages.h"

#include <algorithm>
#include <thread>

namespace par::cuda {

using core::Failure;
using core::Message;
using format::CollKind;
using format::Op;

namespace {

class NcclCommunicators final : public Communicators {
public:
  NcclCommunicators(const CommunicatorsOf &of, Stream stream);
  ~NcclCommunicators() override;
  void post(Stream stream, std::span<const comm::Communication> unit) override;
  void poll() override;
  void abort() noexcept override;
  std::string describe() const override { return nccl.describe(); }
  std::string remark() const override { return meeting.remark; }

private:
  struct One {
    std::string name;
    NcclComm handle = nullptr;
    uint32_t member = 0, size = 0;
  };
  void starts(const One &on, const char *call);
  void split();
  void close(One &on);
  void connect(Stream stream);
  void await(Stream stream);
  void put(const One &on, Stream stream, const comm::Communication &c);
  void collective(const One &on, Stream stream, const comm::Communication &c);
  void settle(int result, const One &on, const char *what);
  void awaitCulprit() const;
  [[noreturn]] void fail(int result, const One &on, const char *what);
  Failure withNotes(Failure failure) const;

  Nccl nccl;
  CommunicatorsOf of;
  NcclMeeting meeting;
  StartLimit *limit = nullptr; ///< while communicators are made
  One world;
  std::vector<One> table; ///< by index in comm::tableOf(); no handle where this rank is no member
};

/// NCCL as this rank opens it; where that fails on one of several hosts, the message names it.
Nccl openedBy(const comm::Control &control) {
  try {
    return Nccl();
  } catch (const Failure &failure) {
    bool several = !control.placing().address.empty();
    throw several ? Failure(failure).note(say(NcclSentence::onHost, describeRank(control))) : failure;
  }
}

} // namespace

NcclCommunicators::NcclCommunicators(const CommunicatorsOf &of, Stream stream)
    : nccl(openedBy(of.control)), of(of), meeting(meetForNccl(of, nccl)) {
  world = {"world", nullptr, of.control.rank(), of.control.world()};
  StartLimit watched(of.control, [&](const std::string &communicator, const std::string &call, double seconds) {
    std::string rank = describeRank(of.control);
    Failure failure(of.options.folder, say(NcclSentence::slowStart, communicator, rank, seconds, call));
    return std::string(withNotes(std::move(failure)).what());
  });
  limit = &watched;
  try {
    NcclConfig config;
    starts(world, "ncclCommInitRankConfig");
    settle(
        nccl.initRank(&world.handle, static_cast<int>(world.size), meeting.id, static_cast<int>(world.member), &config),
        world, "ncclCommInitRankConfig");
    split();
    connect(stream);
  } catch (...) {
    abort();
    throw;
  }
  limit = nullptr;
}

void NcclCommunicators::starts(const One &on, const char *call) {
  if (limit)
    limit->begin(on.name, call);
}

/// A rank that does not find the others says where it may look.
Failure NcclCommunicators::withNotes(Failure failure) const {
  for (const std::string &note : meeting.notes)
    failure = Failure(failure).note(note);
  return std::move(failure).note(say(NcclSentence::sayMore));
}

/// Every rank takes part in every split, in the order of the manifest. Unused communicators are not made.
void NcclCommunicators::split() {
  std::vector<comm::Members> groups = comm::tableOf(*of.options.bundle);
  for (const format::Communicator &communicator : of.options.bundle->manifest.communicators) {
    if (!communicator.groups.empty() && !groups[table.size()].used) {
      table.resize(table.size() + communicator.groups.size());
      continue;
    }
    std::optional<format::Membership> mine = format::membershipOf(communicator, of.control.rank());
    One on{communicator.name, nullptr, mine ? mine->member : 0, 0};
    NcclConfig config;
    config.blocking = 1; // a non-blocking communicator issues each launch from a thread of its own
    int color = mine ? static_cast<int>(mine->group) : ncclNoColor;
    starts(on, "ncclCommSplit");
    settle(nccl.split(world.handle, color, static_cast<int>(on.member), &on.handle, &config), world, "ncclCommSplit");
    for (uint32_t group = 0; group < communicator.groups.size(); ++group) {
      bool member = mine && mine->group == group;
      table.push_back(member ? on : One{communicator.name, nullptr, 0, 0});
      table.back().size = static_cast<uint32_t>(communicator.groups[group].size());
    }
    // A split of a non-blocking parent answers ncclInProgress: wait for the child.
    if (mine)
      settle(ncclInProgress, on, "ncclCommSplit");
  }
}

/// Sends and receives connect at first use: one element to and from every peer, in table order, wherever any
/// program sends on that communicator.
void NcclCommunicators::connect(Stream stream) {
  auto sends = [&](const std::string &name) {
    for (const format::Program &program : of.options.bundle->programs)
      for (const format::Block &block : program.blocks)
        for (const format::Instruction &it : block.instructions)
          if ((it.op == Op::Send || it.op == Op::Recv) && program.comms[it.comm].name == name)
            return true;
    return false;
  };
  DeviceBuffer scratch(of.gpu, 2 * sizeof(float), DeviceBuffer::Place::Device);
  auto *out = scratch.data(), *in = out + sizeof(float);
  constexpr int f32 = 7;
  for (const One &on : table) {
    if (!on.handle || !sends(on.name))
      continue;
    starts(on, "its first sends and receives");
    for (uint32_t distance = 1; distance < on.size; ++distance) {
      auto to = static_cast<int>((on.member + distance) % on.size);
      auto from = static_cast<int>((on.member + on.size - distance) % on.size);
      settle(nccl.groupStart(), on, "ncclGroupStart");
      settle(nccl.send(out, 1, f32, to, on.handle, stream), on, "ncclSend");
      settle(nccl.recv(in, 1, f32, from, on.handle, stream), on, "ncclRecv");
      settle(nccl.groupEnd(), on, "ncclGroupEnd");
    }
  }
  await(stream);
}

/// Looks meanwhile whether the job ends, and whether a communicator has failed.
void NcclCommunicators::await(Stream stream) {
  Owned<Event> end = makeEvent(of.gpu);
  of.gpu->check(of.gpu->eventRecord(end, stream), "cuEventRecord");
  Result result = notReady;
  while ((result = of.gpu->eventQuery(end)) == notReady) {
    of.link.poll();
    poll();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  of.gpu->check(result, "cuEventQuery");
}

/// A rank whose neighbour has ended hears of it from NCCL first: the job, a little later, knows who that was.
void NcclCommunicators::awaitCulprit() const {
  constexpr auto patience = std::chrono::seconds(2);
  for (auto began = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - began < patience;) {
    of.link.poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void NcclCommunicators::fail(int result, const One &on, const char *what) {
  if (result == ncclRemoteError)
    awaitCulprit();
  const char *more = on.handle ? nccl.lastError(on.handle) : nullptr;
  Failure failure = Failure::at(of.options.folder, Message::ncclFailed, on.name, describeRank(of.control), what,
                                nccl.errorText(result));
  if (more && *more)
    failure = Failure(failure).note(more);
  throw(limit ? withNotes(std::move(failure)) : std::move(failure)).exitsWith(core::exitDeadRank);
}

/// The world does not block: pending operations are awaited here, where the job's end is checked too.
void NcclCommunicators::settle(int result, const One &on, const char *what) {
  while (result == ncclInProgress && on.handle) {
    of.link.poll();
    if (nccl.asyncError(on.handle, &result) != ncclOk || result != ncclInProgress)
      break;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (result != ncclOk && !(result == ncclInProgress && !on.handle))
    fail(result, on, what);
}

void NcclCommunicators::post(Stream stream, std::span<const comm::Communication> unit) {
  // Within a group NCCL only enqueues; ncclGroupEnd brings the result of all.
  settle(nccl.groupStart(), world, "ncclGroupStart");
  for (const comm::Communication &c : unit)
    put(table.at(c.communicator), stream, c);
  int result = nccl.groupEnd();
  for (const comm::Communication &c : unit)
    settle(result, table.at(c.communicator), "ncclGroupEnd");
}

void NcclCommunicators::put(const One &on, Stream stream, const comm::Communication &c) {
  if (c.op == Op::Coll)
    return collective(on, stream, c);
  WireType wire = wireType(c, false);
  auto peer = static_cast<int>(c.peer);
  int result = c.op == Op::Send ? nccl.send(c.in, c.n * wire.each, wire.type, peer, on.handle, stream)
                                : nccl.recv(c.out, c.n * wire.each, wire.type, peer, on.handle, stream);
  if (result != ncclInProgress)
    settle(result, on, c.id);
}

void NcclCommunicators::collective(const One &on, Stream stream, const comm::Communication &c) {
  bool reduces = c.kind == CollKind::AllReduce || c.kind == CollKind::ReduceScatter || c.kind == CollKind::Reduce;
  WireType wire = wireType(c, reduces);
  uint64_t n = c.n * wire.each, part = c.n * format::sizeOf(c.type);
  auto *in = static_cast<const std::byte *>(c.in);
  auto *out = static_cast<std::byte *>(c.out);
  bool inPlace = in == out;
  int op = operation(c.reduction), root = static_cast<int>(c.peer), result = ncclOk;
  switch (c.kind) {
  case CollKind::AllReduce:
    result = nccl.allReduce(in, out, n, wire.type, op, on.handle, stream);
    break;
  case CollKind::Broadcast:
    result = nccl.broadcast(in, out, n, wire.type, root, on.handle, stream);
    break;
  case CollKind::Reduce:
    result = nccl.reduce(in, out, n, wire.type, op, root, on.handle, stream);
    break;
  case CollKind::AllGather: // in place: this member's part of the result
    result = nccl.allGather(inPlace ? out + on.member * part : in, out, n, wire.type, on.handle, stream);
    break;
  case CollKind::ReduceScatter:
    result = nccl.reduceScatter(in, inPlace ? out + on.member * part : out, n, wire.type, op, on.handle, stream);
    break;
  case CollKind::AllToAll:
    if (inPlace)
      throw Failure::at(of.options.folder, Message::unsupportedInstruction, c.id, "all_to_all in place on cuda");
    for (uint32_t peer = 0; peer < on.size && (result == ncclOk || result == ncclInProgress); ++peer) {
      result = nccl.send(in + peer * part, n, wire.type, static_cast<int>(peer), on.handle, stream);
      if (result == ncclOk || result == ncclInProgress)
        result = nccl.recv(out + peer * part, n, wire.type, static_cast<int>(peer), on.handle, stream);
    }
    break;
  }
  if (result != ncclInProgress)
    settle(result, on, c.id);
}

void NcclCommunicators::poll() {
  auto look = [&](const One &on) {
    int error = ncclOk;
    if (!on.handle)
      return;
    int result = nccl.asyncError(on.handle, &error);
    if (result != ncclOk || (error != ncclOk && error != ncclInProgress))
      fail(result != ncclOk ? result : error, on, "while a step ran");
  };
  look(world);
  std::for_each(table.begin(), table.end(), look);
}

/// After a run that ended well, peers may still be at work: pending operations end before a communicator is destroyed.
/// If the job ends, or only this attempt, peers may be lost, and would be waited for.
NcclCommunicators::~NcclCommunicators() {
  try {
    of.link.poll();
    for (auto on = table.rbegin(); on != table.rend(); ++on)
      close(*on);
    close(world);
  } catch (const std::exception &) {
    abort(); // the job has ended, or ends for a reason that has been said
  }
}

void NcclCommunicators::close(One &on) {
  if (!on.handle)
    return;
  settle(nccl.finalize(on.handle), on, "ncclCommFinalize");
  nccl.destroy(std::exchange(on.handle, nullptr));
}

/// In the reverse of their making.
void NcclCommunicators::abort() noexcept {
  for (auto on = table.rbegin(); on != table.rend(); ++on)
    if (on->handle)
      nccl.abort(std::exchange(on->handle, nullptr));
  if (world.handle)
    nccl.abort(std::exchange(world.handle, nullptr));
}

std::unique_ptr<Communicators> makeNccl(const CommunicatorsOf &of, Stream stream) {
  return std::make_unique<NcclCommunicators>(of, stream);
}

} // namespace par::cuda
