// Faults of what ranks exchange, on all sides alike.
#include "Breaker.h"

#include <algorithm>

using namespace par::format;
using namespace par::toy;

static bool isCollective(const Instruction &it) { return it.op == Op::Coll; }

static bool reduces(const Instruction &it) {
  return isCollective(it) &&
         (it.coll == CollKind::AllReduce || it.coll == CollKind::ReduceScatter || it.coll == CollKind::Reduce);
}

static uint64_t newTag(const Bundle &bundle) {
  uint64_t tag = 0;
  for (const Program &program : bundle.programs)
    for (const Block &block : program.blocks)
      for (const Instruction &it : block.instructions)
        tag = std::max(tag, it.tag + 1);
  return tag;
}

/// Three quarters of the elements, or all but one.
bool Breaker::fewer(bool collectives) {
  if (!choose([&](const Instruction &it) {
        bool moves = it.op == Op::Send || it.op == Op::Recv || it.op == Op::Copy;
        return (collectives ? isCollective(it) : moves) && it.n > 1;
      }))
    return false;
  uint64_t before = at(spot).n, n = random.below(2) ? before - 1 : before - before / 4;
  if (n == before)
    n = before - 1;
  what += ": n " + std::to_string(before) + " became " + std::to_string(n);
  for (const Spot &place : alike())
    at(place).n = n;
  return true;
}

bool Breaker::reduceTwice() {
  if (!choose(reduces))
    return false;
  uint64_t tag = newTag(bundle);
  for (const Spot &place : alike()) {
    Instruction again = at(place);
    if (groupOf(place) && at(place).operands.size() == 1)
      return false; // two of one group on the same bytes: a race
    again.tag = tag;
    std::vector<Instruction> &list = bundle.programs[place.role].blocks[place.block].instructions;
    list.insert(list.begin() + place.n + 1, again);
  }
  what += " again";
  return true;
}

/// Behind an instruction that writes floats, on all its ranks.
bool Breaker::reduceMore() {
  if (!choose(
          [&](const Instruction &it) { return (it.op == Op::Kernel || it.op == Op::Call) && !it.operands.empty(); }))
    return false;
  Program &program = bundle.programs[spot.role];
  std::vector<Operand> written;
  for (const Operand &operand : at(spot).operands)
    if (operand.access != Access::Read && program.buffers[operand.buffer].type == DType::F32 &&
        program.buffers[operand.buffer].bytes())
      written.push_back(operand);
  std::vector<uint32_t> comms;
  for (uint32_t comm = 0; comm < program.comms.size(); ++comm) {
    const Communicator &known = *bundle.manifest.findCommunicator(program.comms[comm].name);
    bool all = true;
    for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank)
      if (bundle.manifest.ranks[rank].role == spot.role) {
        std::optional<Membership> own = membershipOf(known, rank);
        all = all && own && known.groups[own->group].size() > 1 &&
              std::ranges::all_of(known.groups[own->group],
                                  [&](uint32_t other) { return bundle.manifest.ranks[other].role == spot.role; });
      }
    if (all && program.comms[comm].queue == at(spot).queue)
      comms.push_back(comm);
  }
  if (written.empty() || comms.empty())
    return false;
  Instruction it;
  it.op = Op::Coll;
  it.comm = comms[random.below(comms.size())];
  it.queue = program.comms[it.comm].queue;
  it.coll = CollKind::AllReduce;
  Operand operand = written[random.below(written.size())];
  operand.access = Access::ReadWrite;
  it.operands = {operand};
  it.n = program.buffers[operand.buffer].bytes() / sizeOf(DType::F32);
  it.tag = newTag(bundle);
  what += ": then all_reduce " + describe(program, operand) + " on " + program.comms[it.comm].name;
  ++spot.n;
  return insert(spot, it);
}

/// Chooses another communicator with as many members that holds the program's ranks.
bool Breaker::otherGroups() {
  if (!choose(isCollective))
    return false;
  std::vector<Spot> places = alike();
  Program &program = bundle.programs[spot.role];
  const Communicator &before = *bundle.manifest.findCommunicator(program.comms[at(spot).comm].name);
  std::vector<const Communicator *> others;
  for (const Communicator &comm : bundle.manifest.communicators)
    if (comm.name != before.name && comm.groups != before.groups && comm.groups[0].size() == before.groups[0].size())
      others.push_back(&comm);
  if (others.empty())
    return false;
  const Communicator &other = *others[random.below(others.size())];
  what += ": communicator " + before.name + " became " + other.name;
  for (const Spot &place : places) {
    Program &own = bundle.programs[place.role];
    auto known = std::ranges::find_if(own.comms, [&](const Comm &comm) { return comm.name == other.name; });
    if (known == own.comms.end()) {
      own.comms.push_back({other.name, at(place).queue});
      known = own.comms.end() - 1;
    }
    if (known->queue != at(place).queue)
      return false;
    at(place).comm = uint32_t(known - own.comms.begin());
  }
  return true;
}

bool Breaker::memberOrder() {
  std::vector<Communicator> &comms = bundle.manifest.communicators;
  if (only || comms.empty())
    return false;
  Communicator &comm = comms[random.below(comms.size())];
  RankGroups::Lists groups = comm.groups.lists();
  if (random.below(2) && groups.size() > 1) {
    // The first members stay, the others change groups.
    for (size_t i = 0; i + 1 < groups.size(); ++i)
      if (groups[i].size() == groups[i + 1].size() && groups[i].size() > 1)
        std::swap(groups[i].back(), groups[i + 1].back());
  } else {
    for (std::vector<uint32_t> &group : groups)
      std::rotate(group.begin(), group.begin() + (group.size() > 1), group.end());
  }
  what = "communicator " + comm.name + " has its members in another order";
  bool changes = groups != comm.groups.lists();
  comm.groups = std::move(groups);
  return changes;
}

/// Two sends, or receives, of one block: their peers, or their values.
bool Breaker::tradePeers() {
  if (!choose([](const Instruction &it) { return it.op == Op::Send || it.op == Op::Recv; }))
    return false;
  Instruction &one = at(spot);
  std::vector<Instruction *> others;
  for (Instruction &other : bundle.programs[spot.role].blocks[spot.block].instructions)
    if (&other != &one && other.op == one.op && other.n == one.n && other.type == one.type &&
        other.operands != one.operands)
      others.push_back(&other);
  if (others.empty())
    return false;
  std::swap(one.operands, others[random.below(others.size())]->operands);
  what += " traded values with another one";
  return true;
}

bool Breaker::moveReduction() {
  if (!choose(isCollective))
    return false;
  for (const Spot &place : alike()) {
    if (groupOf(place))
      return false;
    std::vector<Instruction> &list = bundle.programs[place.role].blocks[place.block].instructions;
    size_t by = 1 + random.below(2), to = random.below(2) ? place.n + by : place.n - by;
    if (to >= list.size() || list[to].op == Op::Group || list[to].op == Op::Wait || list[to].op == Op::Signal)
      return false;
    Instruction it = list[place.n];
    list.erase(list.begin() + place.n);
    list.insert(list.begin() + int64_t(to), it);
    what += " moved to :" + std::to_string(to);
  }
  return true;
}

bool Breaker::otherReduction() {
  if (!choose(reduces))
    return false;
  Reduction others[] = {Reduction::Max, Reduction::Min, Reduction::Prod};
  Reduction other = at(spot).reduction == Reduction::Sum ? others[random.below(3)] : Reduction::Sum;
  what += " by " + std::string(toString(other));
  for (const Spot &place : alike())
    at(place).reduction = other;
  return true;
}
