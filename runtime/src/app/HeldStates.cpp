#include "HeldStates.h"

#include "par/messages/Failure.h"

#include <algorithm>
#include <set>

namespace par::core {

namespace {

const Boundary *findStep(const std::vector<Boundary> &held, uint64_t step) {
  auto found = std::find_if(held.begin(), held.end(), [&](const Boundary &one) { return one.step == step; });
  return found == held.end() ? nullptr : &*found;
}

} // namespace

HeldStates::HeldStates(comm::Control &control, KeptState &kept, const Mirroring *mirroring)
    : control(control), kept(kept), mirroring(mirroring) {
  std::string mine = kept.lost() ? "1" : "0";
  for (const Boundary &boundary : kept.boundaries())
    mine += boundary.encode();
  mine += "/";
  for (const HeldMirror &mirror : mirroring ? mirroring->memory().held() : std::vector<HeldMirror>())
    mine += mirror.encode();
  for (std::string text : control.allGather("kept", mine)) {
    held.emplace_back();
    held.back().lost = text[0] == '1';
    text.erase(0, 1);
    while (text[0] != '/')
      held.back().boundaries.push_back(Boundary::decode(text));
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
  const Boundary *noted = findStep(held[control.rank()].boundaries, boundary.step);
  return noted ? *noted : boundary;
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
    sendCopy(control, kept, boundary, lost[i], ways[i],
             [&](uint32_t rank) { return mirroring->memory().bytesOf(mirrorOf(rank, boundary.step)->mirror); });
    how += (i ? ", " : ": ") + remarkOf(lost[i], ways[i]);
  }
  return "";
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
