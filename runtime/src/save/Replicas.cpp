// Finds replicas of parts by the manifest's layouts, as saves do, and sends them over the control plane.
#include "Replicas.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace par::core {

namespace {

/// The most bytes that one exchange carries.
constexpr uint64_t most = 4 << 20;

using PartsByName = std::map<std::string, KeptPart>;

PartsByName partsByName(const format::Bundle &bundle, uint32_t rank) {
  PartsByName parts;
  for (const KeptPart &part : keptParts(bundle, rank))
    parts.emplace(part.tensor->name, part);
  return parts;
}

} // namespace

Transfers transfersTo(const format::Bundle &bundle, uint32_t rank, const std::vector<uint32_t> &holders,
                      const std::optional<MirrorAt> &mirror) {
  std::vector<PartsByName> held;
  for (uint32_t holder : holders)
    held.push_back(partsByName(bundle, holder));
  std::vector<MirrorRange> ranges =
      mirror ? mirrorRanges(bundle, rank, mirror->mirror.whole) : std::vector<MirrorRange>();
  Transfers transfers;
  for (const KeptPart &part : keptParts(bundle, rank)) {
    const format::Layout &layout = part.tensor->layout;
    const format::Rectangle *mine = format::rectangleOf(layout, rank);
    size_t from = 0;
    for (; from < holders.size(); ++from)
      if (auto found = held[from].find(part.tensor->name);
          found != held[from].end() && format::rectangleOf(layout, holders[from]) == mine)
        break;
    bool replicated = from < holders.size();
    std::optional<uint64_t> place = replicated ? held[from][part.tensor->name].at : placeInMirror(ranges, part);
    if (!place) {
      transfers.missing = part.tensor->name;
      break;
    }
    uint32_t holder = replicated ? holders[from] : mirror->holder;
    for (uint64_t done = 0; done < part.bytes; done += most)
      transfers.all.push_back({holder, *place + done, part.at + done, std::min(most, part.bytes - done), !replicated});
  }
  return transfers;
}

std::vector<uint32_t> firstReplicas(const format::Bundle &bundle) {
  std::vector<uint32_t> first;
  std::map<std::vector<const void *>, uint32_t> known;
  for (uint32_t rank = 0; rank < bundle.manifest.ranks.size(); ++rank) {
    std::vector<const void *> held;
    for (const KeptPart &part : keptParts(bundle, rank)) {
      held.push_back(part.tensor);
      held.push_back(format::rectangleOf(part.tensor->layout, rank));
    }
    first.push_back(known.emplace(std::move(held), rank).first->second);
  }
  return first;
}

void sendCopy(comm::Control &control, const KeptState &kept, const Boundary &boundary, uint32_t to,
              const std::vector<Transfer> &transfers, std::span<std::byte> copy, const ReadMirror &readMirror) {
  bool receives = control.rank() == to;
  for (size_t next = 0; next < transfers.size();) {
    // As many as one exchange carries, of one rank: most tensors are small.
    size_t first = next;
    uint64_t bytes = 0;
    for (; next < transfers.size() && transfers[next].from == transfers[first].from &&
           (next == first || bytes + transfers[next].bytes <= most);
         ++next)
      bytes += transfers[next].bytes;
    std::string sent;
    for (size_t i = first; i < next && control.rank() == transfers[i].from; ++i) {
      auto copy = transfers[i].mirrored ? readMirror(to) : kept.copyOf(boundary.step);
      auto part = copy.subspan(transfers[i].fromAt, transfers[i].bytes);
      sent.append(reinterpret_cast<const char *>(part.data()), part.size());
    }
    std::vector<std::string> all = control.gather("state", sent, to);
    const char *at = receives ? all[transfers[first].from].data() : nullptr;
    for (size_t i = first; i < next && receives; at += transfers[i++].bytes)
      std::memcpy(copy.data() + transfers[i].toAt, at, transfers[i].bytes);
  }
}

} // namespace par::core
