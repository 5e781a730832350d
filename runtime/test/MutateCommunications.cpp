// Mutations of what ranks exchange.
#include "Mutator.h"

#include <algorithm>

using namespace par::format;
using namespace par::toy;

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
  if (group && group->n == maxGroup)
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
  std::optional<Membership> own = membershipOf(comm, rank);
  if (!own)
    return false; // it sends nothing
  size_t size = comm.groups[own->group].size();
  bool rooted = it.op == Op::Coll && (it.coll == CollKind::Broadcast || it.coll == CollKind::Reduce);
  if (it.op == Op::Coll && !rooted)
    return false;
  uint32_t &number = rooted ? it.root : pick(it.peer) == 0 ? it.peer[0] : it.peer[random.below(it.peer.size())];
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
      if (alias.of == noIndex)
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
