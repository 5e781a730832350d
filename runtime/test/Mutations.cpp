// Breaks one rank's program in a known way.
#include "Breaker.h"
#include "Mutator.h"

#include <algorithm>

using namespace par::format;
using namespace par::toy;

std::string_view par::toy::toString(Mutation mutation) {
  static constexpr std::string_view names[mutationKinds] = {
      "drop",  "duplicate", "swap",  "peer",   "count", "type",  "reduction", "group",
      "order", "slot",      "depth", "offset", "place", "alias", "wait",      "signal",
      "event", "queue",     "move",  "slots",  "line",  "chunk", "stale"};
  return names[size_t(mutation)];
}

uint64_t Random::next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::vector<Spot> Mutator::spots(bool communications) const {
  return spotsWhere([&](const Instruction &it) { return communications ? isCommunication(it) : !it.operands.empty(); });
}

/// Buffers of their own that executed instructions touch, perhaps through aliases.
std::vector<uint32_t> Mutator::usedBuffers(bool slotted) const {
  std::vector<bool> used(program.buffers.size());
  for (Spot spot : spots(false))
    for (const Operand &operand : program.blocks[spot.block].instructions[spot.n].operands) {
      uint32_t of = program.buffers[operand.buffer].of;
      used[of == noIndex ? operand.buffer : of] = true;
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
  case Mutation::Slots:
    return swapRuns();
  case Mutation::Line:
    return moveRun();
  case Mutation::Chunk:
    return otherBlock();
  case Mutation::Stale:
    return otherMicrobatch();
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

/// A mutant is never written; its new program, the last one, is listed all the same, like that of `role`.
static void listProgram(Manifest &manifest, uint32_t role) {
  auto nameOf = [](uint32_t of) { return "role-" + std::to_string(of) + ".json"; };
  for (const File &file : manifest.files)
    if (file.name == nameOf(role)) {
      File own = file;
      own.name = nameOf(manifest.roles - 1);
      manifest.files.push_back(own);
      return;
    }
}

/// A role of only this rank stays as it is.
uint32_t par::toy::giveOwnProgram(Bundle &bundle, uint32_t rank) {
  uint32_t role = bundle.manifest.ranks[rank].role;
  size_t sharers = 0;
  for (const Rank &other : bundle.manifest.ranks)
    sharers += other.role == role;
  if (sharers < 2)
    return role;
  bundle.manifest.ranks[rank].role = bundle.manifest.roles++;
  bundle.programs.push_back(Program(bundle.programs[role]));
  bundle.manifest.peak.push_back(Peak(bundle.manifest.peak[role]));
  listProgram(bundle.manifest, role);
  return bundle.manifest.ranks[rank].role;
}

std::optional<Bundle> par::toy::mutate(const Bundle &bundle, uint32_t rank, Mutation mutation, Random &random,
                                       std::string &what) {
  Bundle changed = bundle;
  uint32_t role = giveOwnProgram(changed, rank);
  Mutator mutator(changed.manifest, changed.programs[role], rank, random);
  if (!mutator.apply(mutation))
    return std::nullopt;
  what = std::string(toString(mutation)) + " on rank " + std::to_string(rank) + ": " + mutator.what;
  return changed;
}
