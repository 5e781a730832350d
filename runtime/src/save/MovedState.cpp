// Finds the newest state that the ranks of an attempt hold in any layout, and moves it to theirs.
#include "MovedState.h"

#include "par/files/Rectangles.h"
#include "par/messages/Failure.h"

#include <algorithm>

namespace par::core {

namespace {

/// The most bytes that one exchange carries.
constexpr uint64_t maxBytes = 4 << 20;

} // namespace

uint64_t MovedState::Wanted::size() const {
  return static_cast<uint64_t>(elementCount(rectangle->size)) * format::sizeOf(from.tensor->type);
}

MovedState::OldLayout::OldLayout(const format::Bundle &bundle) {
  for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank) {
    parts.emplace_back();
    for (const KeptPart &part : keptParts(bundle, rank))
      parts.back().emplace(part.tensor->name, part);
  }
  for (const format::Tensor &tensor : bundle.manifest.tensors)
    if (changesInTraining(tensor))
      of[sourceOf(bundle.manifest, tensor).name].push_back(&tensor);
}

MovedState::MovedState(comm::Control &control, const std::vector<const format::Bundle *> &family,
                       const format::Bundle &own, std::string place)
    : control(control), placing(control.placing()), own(own), place(std::move(place)), held(placing, family) {
  choose();
  side = !source ? 0 : source->inPlace ? source->side : 1 - source->side;
  for (uint32_t seat : placing.seats)
    into.push_back(placing.memories[seat][side]);
  // An earlier attempt may have left another boundary there, or one that is not whole.
  if (moves())
    static_cast<void>(ftruncate(into[control.rank()], 0));
}

void MovedState::choose() {
  for (const HeldSource &one : askForSources(control, held, static_cast<uint32_t>(own.manifest.ranks.size())))
    if (one.inPlace || plan(one)) {
      source = one;
      lacking.clear();
      return;
    }
}

bool MovedState::plan(const HeldSource &from) {
  // If one process sees all memories, each has a share of what the ranks hold in common.
  bool whole = std::none_of(from.holders.begin(), from.holders.end(), [](const auto &one) { return one.empty(); });
  if (held.together() && !whole)
    return false;
  OldLayout old(held.member(from.ranks));
  wanted.assign(control.world(), {});
  for (uint32_t target = 0; target < control.world(); ++target) {
    std::vector<KeptPart> parts = keptParts(own, target);
    for (uint32_t part = 0; part < parts.size(); ++part)
      if (!planPart(from, old, target, part, parts[part])) {
        if (lacking.empty())
          lacking = core::format("no rank that is left holds all of \"{}\"", parts[part].tensor->name);
        return false;
      }
    std::sort(wanted[target].begin(), wanted[target].end(),
              [](const Wanted &a, const Wanted &b) { return a.sender < b.sender; });
  }
  return true;
}

bool MovedState::planPart(const HeldSource &from, const OldLayout &old, uint32_t target, uint32_t part,
                          const KeptPart &to) {
  const format::Rectangle *needed = format::rectangleOf(to.tensor->layout, target);
  auto tensors = old.of.find(sourceOf(own.manifest, *to.tensor).name);
  if (!needed || tensors == old.of.end())
    return !needed;
  return std::any_of(tensors->second.begin(), tensors->second.end(), [&](const format::Tensor *tensor) {
    return planTensor(from, old, target, part, *needed, *tensor);
  });
}

bool MovedState::planTensor(const HeldSource &from, const OldLayout &old, uint32_t target, uint32_t part,
                            const format::Rectangle &needed, const format::Tensor &tensor) {
  std::vector<Wanted> found;
  for (const format::Rectangle &rectangle : tensor.layout.parts) {
    std::vector<int64_t> start, size;
    if (!intersect(needed.start, needed.size, rectangle.start, rectangle.size, start, size))
      continue;
    std::optional<Wanted> want = find(from, old, target, rectangle, tensor);
    if (!want)
      return false;
    want->part = part;
    found.push_back(std::move(*want));
  }
  if (found.empty())
    return false;
  std::move(found.begin(), found.end(), std::back_inserter(wanted[target]));
  return true;
}

/// A rank that has a rectangle of the old layout: itself, another one, or one with a mirror of that.
std::optional<MovedState::Wanted> MovedState::find(const HeldSource &from, const OldLayout &old, uint32_t target,
                                                   const format::Rectangle &rectangle, const format::Tensor &tensor) {
  std::optional<Wanted> want, mirrored;
  for (uint32_t rank : rectangle.ranks) {
    auto of = old.parts[rank].find(tensor.name);
    if (of == old.parts[rank].end())
      continue;
    for (uint32_t holder : from.holders[rank])
      if (!want || (holder == target && want->sender != target))
        want = Wanted{0, of->second, rank, holder, &rectangle};
    if (const std::optional<MirrorAt> &at = from.mirrors[rank];
        at && held.placeIn({from.ranks, at->mirror}, of->second))
      mirrored = Wanted{0, of->second, rank, at->holder, &rectangle, /*mirrored=*/true};
  }
  return want ? want : mirrored;
}

std::string MovedState::remark() const {
  return core::format(": moved from {} ranks to {}", source->ranks, own.manifest.ranks.size()) +
         (takesMirrors ? ", in part from mirrors" : "");
}

std::vector<std::byte> MovedState::notes() {
  auto ofRankZero = std::find_if(held.copies().begin(), held.copies().end(), [&](const HeldCopies &copies) {
    return copies.seat == 0 && copies.side == source->side && copies.ranks == source->ranks;
  });
  return held.notesOf(*ofRankZero);
}

std::vector<std::byte> MovedState::read(const Wanted &want) {
  if (want.mirrored)
    return held.read(MirrorOf{source->ranks, source->mirrors[want.fromRank]->mirror}, want.from);
  auto copies = std::find_if(held.copies().begin(), held.copies().end(), [&](const HeldCopies &one) {
    return one.side == source->side && one.ranks == source->ranks && one.rank == want.fromRank;
  });
  return held.read(*copies, want.from, source->boundary.step);
}

void MovedState::exchange(uint32_t target) {
  std::vector<Wanted> &list = wanted[target];
  for (size_t next = 0; next < list.size();) {
    size_t first = next;
    uint32_t sender = list[first].sender;
    for (uint64_t bytes = 0;
         next < list.size() && list[next].sender == sender && (next == first || bytes + list[next].size() <= maxBytes);
         ++next)
      bytes += list[next].size();
    if (sender == target)
      continue;
    std::string sent;
    for (size_t i = first; i < next && control.rank() == sender; ++i) {
      std::vector<std::byte> bytes = read(list[i]);
      sent.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    }
    std::vector<std::string> got = control.gather("moved state", sent, target);
    if (control.rank() != target)
      continue;
    const auto *at = reinterpret_cast<const std::byte *>(got[sender].data());
    for (size_t i = first; i < next; at += list[i++].size())
      list[i].bytes.assign(at, at + list[i].size());
  }
}

StoredArray MovedState::arrayOf(uint32_t part) const {
  StoredArray array;
  for (const Wanted &want : wanted[control.rank()])
    if (want.part == part) {
      array.type = want.from.tensor->type;
      array.shape = want.from.tensor->layout.shape;
      array.pieces.push_back({want.rectangle->start, want.rectangle->size, want.bytes.data()});
    }
  return array;
}

void MovedState::moveTo(KeptState &kept) {
  for (uint32_t target = 0; target < control.world(); ++target)
    exchange(target);
  std::vector<Wanted> &mine = wanted[control.rank()];
  for (Wanted &want : mine)
    if (want.sender == control.rank())
      want.bytes = read(want);
  takesMirrors = std::any_of(wanted.begin(), wanted.end(), [](const std::vector<Wanted> &list) {
    return std::any_of(list.begin(), list.end(), [](const Wanted &want) { return want.mirrored; });
  });
  kept.fill(source->boundary, [&](uint32_t part, const format::Tensor &tensor, std::span<std::byte> to) {
    if (format::rectangleOf(tensor.layout, control.rank()))
      loadTensor(to.data(), tensor, control.rank(), arrayOf(part), place);
  });
  wanted.clear();
  control.barrier("moved");
  release();
}

void MovedState::release() { held.release(1 - side); }

} // namespace par::core
