// Ranks as threads on one GPU. Each member says where its operands are and from which point of its stream
// they may be touched; then each does its share of the work on its own stream, and goes on when all others
// have done theirs. Members meet on the host twice for each communication, in the program's one order;
// nothing waits for the GPU.
#include "par/cuda/comm/Communicators.h"
#include "par/kernels/CudaBuiltins.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <mutex>

namespace par::cuda {

using core::Failure;
using core::Message;
using format::CollKind;
using format::Op;

namespace {

/// A member's contribution: its operands, and an event after which others may go on.
struct Offer {
  const std::byte *in = nullptr;
  std::byte *out = nullptr;
  Event event = nullptr;
  uint64_t tag = 0;
};

/// A place where members exchange offers, round after round.
class Table {
public:
  explicit Table(size_t members) : offers(members) {}

  /// All members' offers of this round, when all have come.
  std::vector<Offer> exchange(uint32_t member, const Offer &offer, comm::Endpoint &link) {
    std::unique_lock held(mutex);
    offers[member] = offer;
    uint64_t round = rounds;
    if (++here == offers.size()) {
      complete = offers;
      here = 0;
      ++rounds;
      changed.notify_all();
    }
    while (rounds == round) {
      changed.wait_for(held, std::chrono::milliseconds(20));
      link.poll();
    }
    return complete;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Offer> offers, complete;
  size_t here = 0;
  uint64_t rounds = 0;
};

/// The tables of all communicators, and one for each pair of members; and all events, which others may be
/// about to wait for when the rank that made them has gone.
struct Hub {
  Hub(const std::vector<comm::Members> &groups, int ordinal) : gpu(ordinal) {
    for (const comm::Members &group : groups) {
      all.emplace_back(group.used ? std::make_unique<Table>(group.ranks.size()) : nullptr);
      for (size_t pair = 0; group.used && pair < group.ranks.size() * group.ranks.size(); ++pair)
        pairs[all.size() - 1].emplace_back(std::make_unique<Table>(2));
    }
  }
  std::vector<std::unique_ptr<Table>> all;
  std::map<size_t, std::vector<std::unique_ptr<Table>>> pairs; ///< sender * members + receiver

  Event newEvent() {
    std::lock_guard held(mutex);
    events.push_back(makeEvent(gpu));
    return events.back();
  }

private:
  Gpu gpu;
  std::mutex mutex;
  std::vector<Owned<Event>> events;
};

class SharedCommunicators final : public Communicators {
public:
  SharedCommunicators(const CommunicatorsOf &of, Kernels &kernels);
  void post(Stream stream, std::span<const comm::Communication> unit) override;
  std::string describe() const override { return "one GPU"; }

private:
  /// One communication under way: where it is exchanged, and this member's place there.
  struct Posted {
    const comm::Communication *what;
    Table *table;
    uint32_t member, members;
    Event ready, done;
    std::vector<Offer> offers;
  };
  Posted begin(const comm::Communication &c);
  Event event(const Table *table, size_t which);
  void work(const Posted &posted, Stream stream);
  void copy(std::byte *to, const std::byte *from, uint64_t bytes, Stream stream);
  void reduce(const Posted &posted, uint64_t first, uint64_t n, std::byte *to, Stream stream);

  CommunicatorsOf of;
  Kernels &kernels;
  std::vector<comm::Members> groups;
  std::shared_ptr<Hub> hub;
  std::map<std::pair<const Table *, size_t>, Event> events; ///< of the hub
};

} // namespace

SharedCommunicators::SharedCommunicators(const CommunicatorsOf &of, Kernels &kernels)
    : of(of), kernels(kernels), groups(comm::tableOf(*of.options.bundle)) {
  // Rank 0 makes the hub; its address says to the others where it lies in the memory that all share.
  std::shared_ptr<Hub> made = of.control.rank() == 0 ? std::make_shared<Hub>(groups, of.gpu.ordinal()) : nullptr;
  std::string text = of.control.broadcast("hub", std::to_string(reinterpret_cast<uintptr_t>(&made)));
  uintptr_t address = 0;
  std::from_chars(text.data(), text.data() + text.size(), address);
  hub = *reinterpret_cast<std::shared_ptr<Hub> *>(address);
  of.control.barrier("hub");
}

Event SharedCommunicators::event(const Table *table, size_t which) {
  Event &known = events[{table, which}];
  if (!known)
    known = hub->newEvent();
  return known;
}

SharedCommunicators::Posted SharedCommunicators::begin(const comm::Communication &c) {
  const std::vector<uint32_t> &ranks = groups.at(c.communicator).ranks;
  auto self = static_cast<uint32_t>(std::find(ranks.begin(), ranks.end(), of.control.rank()) - ranks.begin());
  auto size = static_cast<uint32_t>(ranks.size());
  Posted posted{&c, nullptr, self, size, nullptr, nullptr, {}};
  if (c.op == Op::Coll) {
    posted.table = hub->all[c.communicator].get();
  } else {
    bool sends = c.op == Op::Send;
    posted.table = hub->pairs[c.communicator][sends ? self * size + c.peer : c.peer * size + self].get();
    posted.member = sends ? 0 : 1;
    posted.members = 2;
  }
  posted.ready = event(posted.table, 0);
  posted.done = event(posted.table, 1);
  return posted;
}

void SharedCommunicators::post(Stream stream, std::span<const comm::Communication> unit) {
  // A unit may have several communications of one table, which follow each other as posted. All members take the tables
  // in one order, that of their addresses in the hub, so that two that send to each other do not both wait.
  std::vector<Posted> all;
  for (const comm::Communication &c : unit)
    all.push_back(begin(c));
  std::sort(all.begin(), all.end(),
            [](const Posted &a, const Posted &b) { return std::pair(a.table, a.what) < std::pair(b.table, b.what); });
  for (Posted &posted : all) {
    auto *in = static_cast<const std::byte *>(posted.what->in);
    auto *out = static_cast<std::byte *>(posted.what->out);
    of.gpu->check(of.gpu->eventRecord(posted.ready, stream), "cuEventRecord");
    posted.offers = posted.table->exchange(posted.member, {in, out, posted.ready, posted.what->tag}, of.link);
    for (uint32_t other = 0; other < posted.members; ++other) {
      if (posted.offers[other].tag != posted.what->tag)
        throw Failure::at(of.options.folder, Message::cudaOtherTag, posted.what->id, posted.what->tag,
                          groups[posted.what->communicator].name, posted.offers[other].tag);
      if (other != posted.member)
        of.gpu->check(of.gpu->streamWait(stream, posted.offers[other].event, 0), "cuStreamWaitEvent");
    }
    work(posted, stream);
    of.gpu->check(of.gpu->eventRecord(posted.done, stream), "cuEventRecord");
    std::vector<Offer> done = posted.table->exchange(posted.member, {nullptr, nullptr, posted.done, 0}, of.link);
    for (uint32_t other = 0; other < posted.members; ++other)
      if (other != posted.member)
        of.gpu->check(of.gpu->streamWait(stream, done[other].event, 0), "cuStreamWaitEvent");
  }
}

void SharedCommunicators::copy(std::byte *to, const std::byte *from, uint64_t bytes, Stream stream) {
  if (to != from && bytes > 0)
    of.gpu->check(of.gpu->copy(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes, stream),
                  "cuMemcpyAsync");
}

/// Elements [first, first + n) of all members' operands, added in the order of members.
void SharedCommunicators::reduce(const Posted &posted, uint64_t first, uint64_t n, std::byte *to, Stream stream) {
  const comm::Communication &c = *posted.what;
  if (n == 0)
    return;
  std::optional<kernels::CudaStage> stage = kernels::cudaReduce(format::toString(c.type), posted.members, n);
  if (!stage)
    throw Failure::at(of.options.folder, Message::unsupportedInstruction, c.id,
                      std::to_string(posted.members) + " members of a reduction on one GPU");
  kernels::CudaSources sources{};
  for (uint32_t member = 0; member < posted.members; ++member)
    sources.at[member] = posted.offers[member].in + first * format::sizeOf(c.type);
  constexpr uint64_t operations[] = {0, 1, 2, 3}; // as format::Reduction counts
  uint64_t members = posted.members, operation = operations[static_cast<size_t>(c.reduction)];
  void *parameters[] = {&to, &sources, &members, &n, &operation};
  of.gpu->check(of.gpu->launch(kernels.builtin(stage->entry), stage->grid[0], stage->grid[1], stage->grid[2],
                               stage->block[0], stage->block[1], stage->block[2], stage->shared, stream, parameters,
                               nullptr),
                "cuLaunchKernel");
}

/// This member's share. Every byte of any operand is written by one member, after its last reader among them.
void SharedCommunicators::work(const Posted &posted, Stream stream) {
  const comm::Communication &c = *posted.what;
  uint64_t size = format::sizeOf(c.type), bytes = c.n * size, self = posted.member, members = posted.members;
  auto *out = static_cast<std::byte *>(c.out);
  if (c.op == Op::Recv)
    return copy(out, posted.offers[0].in, bytes, stream);
  if (c.op == Op::Send)
    return;
  bool inPlace = c.in == c.out;
  switch (c.kind) {
  case CollKind::AllReduce: {
    uint64_t first = c.n * self / members, last = c.n * (self + 1) / members;
    reduce(posted, first, last - first, out + first * size, stream);
    for (const Offer &other : posted.offers)
      copy(other.out + first * size, out + first * size, (last - first) * size, stream);
    return;
  }
  case CollKind::ReduceScatter:
    return reduce(posted, c.n * self, c.n, inPlace ? out + self * bytes : out, stream);
  case CollKind::Reduce:
    if (self == c.peer)
      reduce(posted, 0, c.n, out, stream);
    return;
  case CollKind::AllGather: {
    auto *own = static_cast<const std::byte *>(c.in) + (inPlace ? self * bytes : 0);
    for (const Offer &other : posted.offers)
      copy(other.out + self * bytes, own, bytes, stream);
    return;
  }
  case CollKind::Broadcast:
    if (self == c.peer)
      for (const Offer &other : posted.offers)
        copy(other.out, out, bytes, stream);
    return;
  case CollKind::AllToAll:
    if (inPlace)
      throw Failure::at(of.options.folder, Message::unsupportedInstruction, c.id, "all_to_all in place on cuda");
    for (size_t other = 0; other < members; ++other)
      copy(out + other * bytes, posted.offers[other].in + self * bytes, bytes, stream);
    return;
  }
}

std::unique_ptr<Communicators> makeShared(const CommunicatorsOf &of, Kernels &kernels) {
  return std::make_unique<SharedCommunicators>(of, kernels);
}

} // namespace par::cuda
