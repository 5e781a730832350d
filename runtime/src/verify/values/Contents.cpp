// Contents of a buffer's slots as expressions.
#include "Contents.h"
#include "verify/Names.h"

#include <algorithm>

using namespace par::verify;

/// The term of a piece from a byte of it on. All bytes of zeros are equal.
static Term from(const Term &term, uint64_t bytes) {
  return term.name <= zerosTerm ? term : Term{term.name, term.offset + bytes, term.spread, term.microbatches};
}

bool par::verify::continues(const Piece &piece, const Piece &next) {
  Term after = from(piece.term, piece.bytes());
  return after.name == next.term.name && after.offset == next.term.offset && after.spread == next.term.spread &&
         after.microbatches == next.term.microbatches;
}

Content par::verify::cut(const Content &slot, uint64_t begin, uint64_t end) {
  Content found;
  cut(slot, begin, end, found);
  return found;
}

void par::verify::cut(const Content &slot, uint64_t begin, uint64_t end, Content &found) {
  found.clear();
  uint64_t at = begin;
  auto it = std::lower_bound(slot.begin(), slot.end(), begin,
                             [](const Piece &piece, uint64_t at) { return piece.end <= at; });
  for (; it != slot.end() && it->begin < end; ++it) {
    uint64_t first = std::max(at, it->begin), last = std::min(end, it->end);
    if (first > at)
      found.push_back({at - begin, first - begin, {}, 0});
    found.push_back({first - begin, last - begin, from(it->term, first - it->begin), it->made});
    at = last;
  }
  if (at < end)
    found.push_back({at - begin, end - begin, {}, 0});
}

/// Whether as many pieces as those of a content, from `first` on, are bytes [begin, end).
static bool covers(const Content &slot, Content::const_iterator first, size_t pieces, uint64_t begin, uint64_t end) {
  return pieces > 0 && size_t(slot.end() - first) >= pieces && first->begin == begin && first[pieces - 1].end == end;
}

void par::verify::put(Content &slot, uint64_t begin, uint64_t bytes, const Content &content) {
  uint64_t end = begin + bytes;
  auto first = std::lower_bound(slot.begin(), slot.end(), begin,
                                [](const Piece &piece, uint64_t at) { return piece.end <= at; });
  if (covers(slot, first, content.size(), begin, end)) {
    for (const Piece &piece : content)
      *first++ = {piece.begin + begin, piece.end + begin, piece.term, piece.made};
    return;
  }
  auto last = first;
  Content made;
  if (first != slot.end() && first->begin < begin)
    made.push_back({first->begin, begin, first->term, first->made});
  for (const Piece &piece : content)
    made.push_back({piece.begin + begin, piece.end + begin, piece.term, piece.made});
  for (; last != slot.end() && last->begin < end; ++last)
    if (last->end > end)
      made.push_back({end, last->end, from(last->term, end - last->begin), last->made});
  if (size_t(last - first) == made.size()) {
    std::copy(made.begin(), made.end(), first);
    return;
  }
  auto place = slot.erase(first, last);
  slot.insert(place, made.begin(), made.end());
}

std::vector<uint64_t> par::verify::bordersOf(const std::vector<const Content *> &contents) {
  std::vector<uint64_t> borders{0};
  for (const Content *content : contents)
    for (const Piece &piece : *content)
      borders.push_back(piece.end);
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

Term par::verify::termAt(const Content &content, uint64_t at, size_t &place) {
  while (place < content.size() && content[place].end <= at)
    ++place;
  return place < content.size() ? from(content[place].term, at - content[place].begin) : Term();
}

uint64_t par::verify::mixContent(uint64_t name, const Content &content, RankClasses &classes,
                                 RankClasses::Spread &spread) {
  for (size_t i = 0; i < content.size(); ++i) {
    const Piece &piece = content[i];
    spread = classes.both(spread, piece.term.spread);
    if (i > 0 && continues(content[i - 1], piece))
      continue;
    name = mix(mix(name, piece.term.name), piece.term.offset);
    if (i > 0)
      name = mix(name, piece.begin);
  }
  return name;
}

bool par::verify::sameContent(const Content &a, uint32_t rankA, const Content &b, uint32_t rankB,
                              const RankClasses &classes) {
  std::vector<uint64_t> borders = bordersOf({&a, &b});
  size_t inA = 0, inB = 0;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    Term one = termAt(a, borders[i], inA), other = termAt(b, borders[i], inB);
    if (one.name != other.name || one.offset != other.offset ||
        classes.classOf(one.spread, rankA) != classes.classOf(other.spread, rankB))
      return false;
  }
  return true;
}
