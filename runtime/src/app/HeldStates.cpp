// Tells all ranks what each of them holds, and sends copies to those that lack one.
#include "HeldStates.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace par::core {

namespace {

const Boundary *findStep(const std::vector<Boundary> &held, uint64_t step) {
  auto found = std::find_if(held.begin(), held.end(), [&](const Boundary &one) { return one.step == step; });
  return found == held.end() ? nullptr : &*found;
}

} // namespace

HeldStates::HeldStates(comm::Control &control, KeptState &kept, const Mirroring *mirroring, uint64_t saidHere)
    : control(control), kept(kept), mirroring(mirroring) {
  std::string mine = (kept.lost() ? "1" : "0") + std::to_string(saidHere) + ";";
  for (const Boundary &boundary : kept.boundaries())
    mine += boundary.encode();
  if (auto settled = kept.keeps() ? kept.ownMemory().spareBoundary() : std::nullopt)
    mine += "+" + settled->encode();
  mine += "/";
  for (const HeldMirror &mirror : mirroring ? mirroring->memory().held() : std::vector<HeldMirror>())
    mine += mirror.encode();
  for (std::string text : control.allGather("kept", mine)) {
    held.emplace_back();
    held.back().lost = text[0] == '1';
    if (held.size() == 1)
      said = std::stoull(text.substr(1));
    text.erase(0, text.find(';') + 1);
    while (text[0] != '/' && text[0] != '+')
      held.back().boundaries.push_back(Boundary::decode(text));
    if (text[0] == '+') {
      text.erase(0, 1);
      held.back().settled = Boundary::decode(text);
    }
    for (text.erase(0, 1); !text.empty();)
      held.back().mirrors.push_back(HeldMirror::decode(text));
  }
}

bool HeldStates::anyLost() const {
  return std::any_of(held.begin(), held.end(), [](const Held &one) { return one.lost; });
}

bool HeldStates::haveFew() const {
  return std::all_of(held.begin(), held.end(), [](const Held &one) { return one.boundaries.size() < 2; });
}

std::vector<Boundary> HeldStates::common() const {
  auto any = std::find_if(held.begin(), held.end(), [](const Held &one) { return !one.lost; });
  std::vector<Boundary> common = any == held.end() ? std::vector<Boundary>() : any->boundaries;
  for (const Held &one : held)
    std::erase_if(common,
                  [&](const Boundary &boundary) { return !one.lost && !findStep(one.boundaries, boundary.step); });
  return common;
}

Boundary HeldStates::own(const Boundary &boundary) const {
  const Held &mine = held[control.rank()];
  if (const Boundary *noted = findStep(mine.boundaries, boundary.step))
    return *noted;
  if (mine.settled && mine.settled->step == boundary.step)
    return *mine.settled;
  Boundary given = boundary;
  if (!mine.boundaries.empty()) {
    given.resident = mine.boundaries.back().resident;
    given.saidIgnored = mine.boundaries.back().saidIgnored;
  }
  return given;
}

std::optional<MirrorAt> HeldStates::mirrorOf(uint32_t rank, uint64_t step) const {
  for (uint32_t holder = 0; holder < held.size(); ++holder)
    for (const HeldMirror &mirror : held[holder].mirrors)
      if (mirror.rank == rank && mirror.step == step)
        return MirrorAt{holder, mirror};
  return std::nullopt;
}

std::vector<bool> HeldStates::mirrored(uint64_t step) const {
  std::vector<bool> has;
  for (uint32_t rank = 0; rank < held.size(); ++rank) {
    const std::vector<HeldMirror> &there = held[mirroring->plan().neighbourOf(rank)].mirrors;
    has.push_back(std::find(there.begin(), there.end(), mirroring->of(rank, step)) != there.end());
  }
  return has;
}

std::string HeldStates::completeLost(const format::Bundle &bundle, const Boundary &boundary, std::string &how) {
  std::vector<uint32_t> lost, holders;
  for (uint32_t rank = 0; rank < held.size(); ++rank)
    (held[rank].lost ? lost : holders).push_back(rank);
  std::vector<std::vector<Transfer>> ways;
  for (uint32_t rank : lost) {
    if (kept.together())
      return core::format("rank {} is lost with its memory, and with its share of what others hold", rank);
    Transfers transfers = transfersTo(bundle, rank, holders, mirrorOf(rank, boundary.step));
    if (!transfers.missing.empty())
      return core::format("rank {} is lost with its memory, and no other rank holds its part of \"{}\"", rank,
                          transfers.missing);
    ways.push_back(std::move(transfers.all));
  }
  for (size_t i = 0; i < lost.size(); ++i) {
    bool receives = control.rank() == lost[i];
    sendCopy(control, kept, boundary, lost[i], ways[i], receives ? kept.begin() : std::span<std::byte>(),
             [&](uint32_t rank) { return mirroring->memory().bytesOf(mirrorOf(rank, boundary.step)->mirror); });
    if (receives)
      kept.end(boundary);
    how += (i ? ", " : ": ") + remarkOf(lost[i], ways[i]);
  }
  return "";
}

std::vector<Boundary> HeldStates::settled(uint64_t step) const {
  std::vector<Boundary> found;
  for (const Held &one : held)
    if (!anyLost() && one.settled && one.settled->step > step && one.settled->step <= said &&
        !findStep(found, one.settled->step))
      found.push_back(*one.settled);
  std::sort(found.begin(), found.end(), [](const Boundary &a, const Boundary &b) { return a.step < b.step; });
  return found;
}

bool HeldStates::completeSettled(const format::Bundle &bundle, const Boundary &boundary,
                                 const std::vector<uint32_t> &hostOf) {
  std::vector<uint32_t> lacking, holders;
  for (uint32_t rank = 0; rank < held.size(); ++rank)
    (held[rank].settled && held[rank].settled->step == boundary.step ? holders : lacking).push_back(rank);
  std::vector<std::vector<Transfer>> ways;
  for (uint32_t rank : lacking) {
    // The way within a host is the shorter one.
    std::vector<uint32_t> near;
    for (bool same : {true, false})
      std::copy_if(holders.begin(), holders.end(), std::back_inserter(near),
                   [&](uint32_t holder) { return (hostOf.empty() || hostOf[holder] == hostOf[rank]) == same; });
    Transfers transfers = transfersTo(bundle, rank, near);
    if (!transfers.missing.empty())
      return false;
    ways.push_back(std::move(transfers.all));
  }
  if (lacking.empty())
    return true;
  bool receives = std::find(lacking.begin(), lacking.end(), control.rank()) != lacking.end();
  std::span<std::byte> room = receives ? kept.ownMemory().beginSpare() : std::span<std::byte>();
  std::vector<std::string> rooms = control.allGather("room", receives && room.empty() ? "" : "1");
  if (std::count(rooms.begin(), rooms.end(), "1") < static_cast<std::ptrdiff_t>(rooms.size())) {
    for (uint32_t rank : lacking) // some have dropped what they had to make room
      held[rank].settled.reset();
    return false;
  }
  for (size_t i = 0; i < lacking.size(); ++i)
    sendCopy(control, kept, boundary, lacking[i], ways[i], room, nullptr);
  if (receives)
    kept.ownMemory().endCopy(CopyMemory::spare, own(boundary));
  return true;
}

/// "rank 2 has its state from rank 0 and its mirror at rank 3".
std::string HeldStates::remarkOf(uint32_t rank, const std::vector<Transfer> &way) const {
  std::set<std::pair<uint32_t, bool>> from;
  for (const Transfer &transfer : way)
    from.insert({transfer.from, transfer.mirrored});
  std::string text = core::format("rank {} has its state from", rank), joint;
  for (const auto &[holder, mirrored] : from)
    text += core::format("{} {}rank {}", std::exchange(joint, " and"), mirrored ? "its mirror at " : "", holder);
  return text;
}

} // namespace par::core
