#include "sim/Races.h"

namespace par::sim {

void Shadow::splitAt(const std::byte *at) {
  auto next = segments.upper_bound(at);
  if (next == segments.begin())
    return;
  auto it = std::prev(next);
  if (it->first == at || it->second.end <= at)
    return;
  Segment rest = it->second;
  it->second.end = at;
  segments.emplace(at, rest);
}

Shadow::Segments::iterator Shadow::cover(const std::byte *begin, const std::byte *end) {
  splitAt(begin);
  splitAt(end);
  const std::byte *covered = begin;
  for (auto it = segments.lower_bound(begin); covered < end; ++it) {
    const std::byte *upTo = it == segments.end() || it->first > end ? end : it->first;
    if (covered < upTo) {
      Segment fresh;
      fresh.end = upTo;
      it = segments.emplace_hint(it, covered, fresh);
    }
    covered = it->second.end;
  }
  return segments.find(begin);
}

std::optional<uint32_t> Shadow::touch(const Access &access, uint32_t number, const View &view) {
  const std::byte *begin = access.begin, *end = access.begin + access.bytes;
  bool reads = access.touch == verify::Touch::Read;
  auto first = cover(begin, end), it = first;
  for (; it != segments.end() && it->first < end; ++it) {
    Segment &segment = it->second;
    if (!view.has(segment.writer, segment.written.time))
      return segment.written.access;
    if (reads) {
      segment.read[view.queue] = {view.own, number};
      continue;
    }
    for (uint32_t queue = 0; queue < segment.read.size(); ++queue)
      if (!view.has(queue, segment.read[queue].time))
        return segment.read[queue].access;
  }
  if (!reads) {
    Segment whole;
    whole.end = end;
    whole.writer = view.queue;
    whole.written = {view.own, number};
    segments.erase(first, it);
    segments.emplace(begin, whole);
  }
  return std::nullopt;
}

} // namespace par::sim
