//===- Mutations.cpp - Breaks one rank's program in a known way ---------------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Mutations.h"

#include <algorithm>

using namespace par::format;
using namespace par::toy;

std::string_view par::toy::toString(Mutation mutation) {
  static constexpr std::string_view names[kMutations] = {"drop",  "duplicate", "swap",  "peer",  "count",
                                                         "type",  "reduction", "group", "order", "slot",
                                                         "depth", "offset",    "place", "alias", "wait",
                                                         "signal", "event",   "queue", "move"};
  return names[size_t(mutation)];
}

uint64_t Random::next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

namespace {
/// An instruction of a block that some entry runs.
struct Spot {
  uint32_t block, n;
};

class Mutator {
public:
  Mutator(const Manifest &manifest, Program &program, uint32_t rank, Random &random)
      : manifest(manifest), program(program), rank(rank), random(random) {}
  bool apply(Mutation mutation);
  std::string what;

private:
  bool drop(Spot spot);
  bool duplicate(Spot spot);
  bool swap(Spot spot);
  bool peer(Spot spot);
  bool count(Spot spot);
  bool type(Spot spot);
  bool reduction(Spot spot);
  bool group(Spot spot);
  bool order(Spot spot);
  bool slot(Spot spot);
  bool depth();
  bool offset();
  bool place();
  bool alias();
  bool dropEvent(Op op);
  bool event();
  bool queue();
  bool queueOfComm(uint32_t comm, uint32_t to);
  bool move();

  template <typename Wanted>
  std::vector<Spot> spotsWhere(Wanted wanted) const;
  std::vector<Spot> spots(bool communications) const;
  std::vector<uint32_t> usedBuffers(bool slotted) const;
  std::vector<Instruction> &list(Spot spot) { return program.blocks[spot.block].instructions; }
  Instruction &at(Spot spot) { return list(spot)[spot.n]; }
  Instruction *groupOf(Spot spot);
  template <typename T>
  const T &pick(const std::vector<T> &from) {
    return from[random.below(from.size())];
  }
  void say(Spot spot, const std::string &text) {
    what = instructionId(program, spot.block, spot.n) + " " + text;
  }

  const Manifest &manifest;
  Program &program;
  uint32_t rank;
  Random &random;
};
} // namespace

static bool isCommunication(const Instruction &it) {
  return it.op == Op::Coll || it.op == Op::Send || it.op == Op::Recv;
}

template <typename Wanted>
std::vector<Spot> Mutator::spotsWhere(Wanted wanted) const {
  std::vector<bool> runs(program.blocks.size());
  for (const Entry &entry : program.entries)
    for (const Run &run : entry.runs)
      runs[run.block] = true;
  std::vector<Spot> found;
  for (uint32_t block = 0; block < program.blocks.size(); ++block)
    for (uint32_t n = 0; runs[block] && n < program.blocks[block].instructions.size(); ++n) {
      if (wanted(program.blocks[block].instructions[n]))
        found.push_back({block, n});
    }
  return found;
}

std::vector<Spot> Mutator::spots(bool communications) const {
  return spotsWhere(
      [&](const Instruction &it) { return communications ? isCommunication(it) : !it.operands.empty(); });
}

/// Buffers of their own that executed instructions touch, perhaps through aliases.
std::vector<uint32_t> Mutator::usedBuffers(bool slotted) const {
  std::vector<bool> used(program.buffers.size());
  for (Spot spot : spots(false))
    for (const Operand &operand : program.blocks[spot.block].instructions[spot.n].operands) {
      uint32_t of = program.buffers[operand.buffer].of;
      used[of == kNone ? operand.buffer : of] = true;
    }
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < used.size(); ++i)
    if (used[i] && (!slotted || program.buffers[i].at.size() > 1))
      found.push_back(i);
  return found;
}

/// The group instruction that the communication belongs to, if any.
Instruction *Mutator::groupOf(Spot spot) {
  for (uint32_t n = spot.n; n-- > 0;) {
    Instruction &it = list(spot)[n];
    if (it.op == Op::Group)
      return n + it.n >= spot.n ? &it : nullptr;
  }
  return nullptr;
}

bool Mutator::drop(Spot spot) {
  say(spot, "dropped");
  Instruction *group = groupOf(spot);
  bool alone = group && --group->n == 0;
  list(spot).erase(list(spot).begin() + spot.n);
  if (alone)
    list(spot).erase(list(spot).begin() + spot.n - 1);
  return true;
}

bool Mutator::duplicate(Spot spot) {
  Instruction *group = groupOf(spot);
  if (group && group->n == kMaxGroup)
    return false;
  if (group)
    ++group->n;
  say(spot, "duplicated");
  Instruction copy = at(spot);
  list(spot).insert(list(spot).begin() + spot.n, std::move(copy));
  return true;
}

/// With the next communication of the block.
bool Mutator::swap(Spot spot) {
  uint32_t next = spot.n + 1;
  while (next < list(spot).size() && !isCommunication(list(spot)[next]))
    ++next;
  if (next == list(spot).size() || list(spot)[next].queue != at(spot).queue)
    return false;
  say(spot, "swapped with :" + std::to_string(next));
  std::swap(at(spot), list(spot)[next]);
  return true;
}

bool Mutator::peer(Spot spot) {
  Instruction &it = at(spot);
  const Communicator &comm = *manifest.findCommunicator(program.comms[it.comm].name);
  size_t size = comm.groups[membershipOf(comm, rank)->group].size();
  bool rooted = it.op == Op::Coll && (it.coll == CollKind::Broadcast || it.coll == CollKind::Reduce);
  if (it.op == Op::Coll && !rooted)
    return false;
  uint32_t &number = rooted               ? it.root
                     : pick(it.peer) == 0 ? it.peer[0]
                                          : it.peer[random.below(it.peer.size())];
  uint32_t other = uint32_t((number + 1 + random.below(size)) % (size + 1)); // one beyond is wrong, too
  if (other == number)
    return false;
  say(spot, "peer " + std::to_string(number) + " became " + std::to_string(other));
  number = other;
  return true;
}

bool Mutator::count(Spot spot) {
  Instruction &it = at(spot);
  uint64_t choices[] = {it.n + 1, it.n - 1, it.n / 2, it.n * 2};
  uint64_t other = choices[random.below(4)];
  if (other == 0 || other == it.n)
    return false;
  say(spot, "count " + std::to_string(it.n) + " became " + std::to_string(other));
  it.n = other;
  return true;
}

/// Another type of the same size, seen through an alias so that the program stays well-formed.
bool Mutator::type(Spot spot) {
  Instruction &it = at(spot);
  DType other = it.type == DType::F32 ? DType::I32 : it.type == DType::F64 ? DType::I64 : DType::F32;
  say(spot, "type " + std::string(toString(it.type)) + " became " + std::string(toString(other)));
  if (sizeOf(other) == sizeOf(it.type) && random.below(4)) {
    for (Operand &operand : it.operands) {
      Buffer alias = program.buffers[operand.buffer];
      if (alias.of == kNone)
        alias.of = operand.buffer, alias.offset = 0;
      alias.name += "." + std::to_string(program.buffers.size());
      alias.at.clear();
      alias.tensor.clear();
      alias.type = other;
      operand.buffer = uint32_t(program.buffers.size());
      program.buffers.push_back(std::move(alias));
    }
  }
  it.type = other;
  return true;
}

bool Mutator::reduction(Spot spot) {
  Instruction &it = at(spot);
  if (it.op != Op::Coll || it.coll == CollKind::AllGather || it.coll == CollKind::AllToAll ||
      it.coll == CollKind::Broadcast)
    return false;
  it.reduction = it.reduction == Reduction::Sum ? Reduction::Max : Reduction::Sum;
  say(spot, "reduces by " + std::string(toString(it.reduction)));
  return true;
}

/// Another communicator (with its queue), or another border of a group.
bool Mutator::group(Spot spot) {
  Instruction &it = at(spot);
  Instruction *group = groupOf(spot);
  if (group && random.below(2)) {
    say(spot, "its group of " + std::to_string(group->n) + " lost its last member");
    if (--group->n == 0)
      list(spot).erase(list(spot).begin() + (group - list(spot).data()));
    return true;
  }
  if (!group && random.below(3) == 0) {
    uint32_t last = spot.n;
    while (last + 1 < list(spot).size() && isCommunication(list(spot)[last + 1]) &&
           list(spot)[last + 1].queue == it.queue && last - spot.n < 3)
      ++last;
    Instruction head;
    head.op = Op::Group;
    head.queue = it.queue;
    head.n = last - spot.n + 1;
    say(spot, "became a group of " + std::to_string(head.n));
    list(spot).insert(list(spot).begin() + spot.n, std::move(head));
    return true;
  }
  std::vector<uint32_t> others;
  for (uint32_t i = 0; i < program.comms.size(); ++i)
    if (i != it.comm && (!group || program.comms[i].queue == it.queue))
      others.push_back(i);
  if (others.empty())
    return false;
  uint32_t other = pick(others);
  say(spot, "communicator " + program.comms[it.comm].name + " became " + program.comms[other].name);
  it.comm = other;
  it.queue = program.comms[other].queue;
  return true;
}

/// The communication moves within its block, or its run changes places with a neighbour that communicates.
bool Mutator::order(Spot spot) {
  if (random.below(2)) {
    Entry &entry = program.entries[random.below(program.entries.size())];
    if (entry.runs.size() < 2)
      return false;
    size_t i = random.below(entry.runs.size() - 1),
           j = i + 1 + random.below(std::min<size_t>(3, entry.runs.size() - i - 1));
    const Run &a = entry.runs[i], &b = entry.runs[j];
    auto communicates = [&](const Run &run) {
      const auto &all = program.blocks[run.block].instructions;
      return std::any_of(all.begin(), all.end(), isCommunication);
    };
    if (!communicates(a) || (a.block == b.block && a.microbatch == b.microbatch))
      return false;
    what = "entry " + entry.name + ": runs " + std::to_string(i) + " and " + std::to_string(j) + " swapped";
    std::swap(entry.runs[i], entry.runs[j]);
    return true;
  }
  if (groupOf(spot) || list(spot).size() < 2)
    return false;
  uint32_t to = uint32_t(random.below(list(spot).size()));
  // Not into the middle of a group, and past something.
  for (uint32_t n = 0; n < list(spot).size(); ++n)
    if (list(spot)[n].op == Op::Group && to > n && to <= n + list(spot)[n].n)
      return false;
  if (to == spot.n)
    return false;
  say(spot, "moved to :" + std::to_string(to));
  Instruction it = at(spot);
  list(spot).erase(list(spot).begin() + spot.n);
  list(spot).insert(list(spot).begin() + to, std::move(it));
  return true;
}

/// An operand names another slot of its buffer.
bool Mutator::slot(Spot spot) {
  Instruction &it = at(spot);
  Operand &operand = it.operands[random.below(it.operands.size())];
  if (depthOf(program, operand.buffer) < 2)
    return false;
  std::string before = describe(program, operand);
  if (random.below(2))
    operand.slot.offset += random.below(2) || operand.slot.base == SlotExpr::Fixed ? 1 : -1;
  else
    operand.slot = {SlotExpr::Fixed, int64_t(random.below(depthOf(program, operand.buffer)))};
  say(spot, "'" + before + "' became '" + describe(program, operand) + "'");
  return true;
}

/// A buffer, or an event, loses its last slot.
bool Mutator::depth() {
  std::vector<uint32_t> buffers = usedBuffers(true);
  if (Event *event = random.below(3) || program.events.empty() ? nullptr
                                                               : &program.events[random.below(program.events.size())];
      event && event->depth > 1) {
    what = "event '" + event->name + "' has a depth of " + std::to_string(--event->depth);
    return true;
  }
  if (buffers.empty())
    return false;
  Buffer &buffer = program.buffers[pick(buffers)];
  buffer.at.pop_back();
  what = "'" + buffer.name + "' has a depth of " + std::to_string(buffer.at.size());
  return true;
}

/// A slot moves by a few lines of its own size.
bool Mutator::offset() {
  std::vector<uint32_t> buffers = usedBuffers(false);
  Buffer &buffer = program.buffers[pick(buffers)];
  uint64_t &at = buffer.at[random.below(buffer.at.size())];
  uint64_t lines = (buffer.bytes() + kAlignment - 1) / kAlignment,
           by = (1 + random.below(lines)) * kAlignment;
  uint64_t end =
      buffer.kind == BufferKind::State ? program.arena.state : program.arena.state + program.arena.pool;
  uint64_t begin = buffer.kind == BufferKind::State ? 0 : program.arena.state;
  bool up = random.below(2) && at + by + buffer.bytes() <= end;
  if (!up && at < begin + by)
    return false;
  what = "'" + buffer.name + "' moved from " + std::to_string(at) + " by " + (up ? "" : "-") +
         std::to_string(by);
  at = up ? at + by : at - by;
  return true;
}

/// A slot moves onto the begin of another buffer's slot, or of another slot of its own.
bool Mutator::place() {
  std::vector<uint32_t> buffers = usedBuffers(false);
  Buffer &buffer = program.buffers[pick(buffers)];
  const Buffer &target = program.buffers[pick(buffers)];
  uint64_t &at = buffer.at[random.below(buffer.at.size())], to = pick(target.at);
  bool state = buffer.kind == BufferKind::State;
  uint64_t end = state ? program.arena.state : program.arena.state + program.arena.pool;
  if (to == at || state != (target.kind == BufferKind::State) || buffer.space != target.space ||
      to + buffer.bytes() > end)
    return false;
  what = "'" + buffer.name + "' moved from " + std::to_string(at) + " onto '" + target.name + "' at " +
         std::to_string(to);
  at = to;
  return true;
}

/// An alias lies elsewhere in its buffer, or in another one.
bool Mutator::alias() {
  std::vector<uint32_t> aliases;
  for (Spot spot : spots(false))
    for (const Operand &operand : at(spot).operands)
      if (program.buffers[operand.buffer].of != kNone)
        aliases.push_back(operand.buffer);
  if (aliases.empty())
    return false;
  Buffer &buffer = program.buffers[pick(aliases)];
  uint32_t of = random.below(2) ? buffer.of : pick(usedBuffers(false));
  const Buffer &owner = program.buffers[of];
  uint64_t size = sizeOf(buffer.type);
  if (owner.space != buffer.space || owner.index != buffer.index || owner.bytes() < buffer.bytes())
    return false;
  uint64_t offset = random.below((owner.bytes() - buffer.bytes()) / size + 1) * size;
  if (of == buffer.of && offset == buffer.offset)
    return false;
  what = "alias '" + buffer.name + "' of '" + program.buffers[buffer.of].name + "' at " +
         std::to_string(buffer.offset) + " became one of '" + owner.name + "' at " + std::to_string(offset);
  buffer.of = of, buffer.offset = offset;
  return true;
}

/// A wait or a signal goes.
bool Mutator::dropEvent(Op op) {
  std::vector<Spot> all = spotsWhere([&](const Instruction &it) { return it.op == op; });
  if (all.empty())
    return false;
  Spot spot = pick(all);
  say(spot, std::string(toString(op)) + " " + program.events[at(spot).event].name + " dropped");
  list(spot).erase(list(spot).begin() + spot.n);
  return true;
}

/// A wait or a signal names another event, or another slot of its own.
bool Mutator::event() {
  std::vector<Spot> all =
      spotsWhere([](const Instruction &it) { return it.op == Op::Wait || it.op == Op::Signal; });
  if (all.empty())
    return false;
  Spot spot = pick(all);
  Instruction &it = at(spot);
  const Event &old = program.events[it.event];
  if (old.depth > 1 && random.below(2)) {
    it.eventSlot.offset += random.below(2) ? 1 : -1;
    say(spot, std::string(toString(it.op)) + " " + old.name + " at another slot");
    return true;
  }
  auto other = uint32_t(random.below(program.events.size()));
  if (other == it.event || program.events[other].index != old.index)
    return false;
  say(spot, std::string(toString(it.op)) + " " + old.name + " became one of " + program.events[other].name);
  it.event = other;
  return true;
}

/// An instruction runs on another queue; or a communicator does, with all its communications.
bool Mutator::queue() {
  auto to = uint32_t(random.below(program.queues.size()));
  if (!program.comms.empty() && random.below(4) == 0)
    return queueOfComm(uint32_t(random.below(program.comms.size())), to);
  std::vector<Spot> all =
      spotsWhere([](const Instruction &it) { return !isCommunication(it) && it.op != Op::Group; });
  Spot spot = pick(all);
  if (at(spot).queue == to)
    return false;
  say(spot, std::string(toString(at(spot).op)) + " moved from queue " + program.queues[at(spot).queue] + " to " +
                program.queues[to]);
  at(spot).queue = to;
  return true;
}

bool Mutator::queueOfComm(uint32_t comm, uint32_t to) {
  if (program.comms[comm].queue == to)
    return false;
  std::vector<Spot> all = spots(true);
  for (Spot spot : all)
    if (at(spot).comm == comm && groupOf(spot))
      return false; // its group may hold communications of others
  what = "communicator " + program.comms[comm].name + " moved from queue " +
         program.queues[program.comms[comm].queue] + " to " + program.queues[to];
  program.comms[comm].queue = to;
  for (Spot spot : all)
    if (at(spot).comm == comm)
      at(spot).queue = to;
  return true;
}

/// A wait or a signal stands elsewhere in its block. (That another instruction does makes a program that computes
/// something else, which no proof about order can know.)
bool Mutator::move() {
  std::vector<Spot> all =
      spotsWhere([](const Instruction &it) { return it.op == Op::Wait || it.op == Op::Signal; });
  if (all.empty())
    return false;
  Spot spot = pick(all);
  auto to = uint32_t(random.below(list(spot).size()));
  for (uint32_t n = 0; n < list(spot).size(); ++n)
    if (list(spot)[n].op == Op::Group && to > n && to <= n + list(spot)[n].n)
      return false; // into a group
  if (to == spot.n)
    return false;
  say(spot, std::string(toString(at(spot).op)) + " moved to :" + std::to_string(to));
  Instruction it = at(spot);
  list(spot).erase(list(spot).begin() + spot.n);
  list(spot).insert(list(spot).begin() + to, std::move(it));
  return true;
}

bool Mutator::apply(Mutation mutation) {
  switch (mutation) {
  case Mutation::Depth:
    return depth();
  case Mutation::Offset:
    return offset();
  case Mutation::Place:
    return place();
  case Mutation::Alias:
    return alias();
  case Mutation::Wait:
    return dropEvent(Op::Wait);
  case Mutation::Signal:
    return dropEvent(Op::Signal);
  case Mutation::Event:
    return event();
  case Mutation::Queue:
    return queue();
  case Mutation::Move:
    return move();
  default:
    break;
  }
  std::vector<Spot> all = spots(mutation != Mutation::Slot);
  if (all.empty())
    return false;
  Spot spot = pick(all);
  switch (mutation) {
  case Mutation::Drop:
    return drop(spot);
  case Mutation::Duplicate:
    return duplicate(spot);
  case Mutation::Swap:
    return swap(spot);
  case Mutation::Peer:
    return peer(spot);
  case Mutation::Count:
    return count(spot);
  case Mutation::Type:
    return type(spot);
  case Mutation::Reduce:
    return reduction(spot);
  case Mutation::Group:
    return group(spot);
  case Mutation::Order:
    return order(spot);
  default:
    return slot(spot);
  }
}

std::optional<Bundle> par::toy::mutate(const Bundle &bundle, uint32_t rank, Mutation mutation, Random &random,
                                       std::string &what) {
  Bundle changed = bundle;
  uint32_t role = bundle.manifest.ranks[rank].role;
  size_t sharers = 0;
  for (const Rank &other : bundle.manifest.ranks)
    sharers += other.role == role;
  // The rank gets a program of its own; a role that it has alone is its own already.
  if (sharers > 1) {
    changed.manifest.ranks[rank].role = changed.manifest.roles++;
    changed.programs.push_back(bundle.programs[role]);
    changed.manifest.peak.push_back(bundle.manifest.peak[role]);
    role = changed.manifest.ranks[rank].role;
  }
  Mutator mutator(changed.manifest, changed.programs[role], rank, random);
  if (!mutator.apply(mutation))
    return std::nullopt;
  what = std::string(toString(mutation)) + " on rank " + std::to_string(rank) + ": " + mutator.what;
  changed.manifest.files.clear();
  return changed;
}
