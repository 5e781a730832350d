#include "par/Solver/Pack/Packing.h"
#include "llvm/ADT/STLExtras.h"

using namespace par;
using llvm::Error;
using llvm::Twine;

/// `4-9`
static Life parseLife(ProblemText &text) {
  llvm::StringRef word = text.word();
  auto [begin, end] = word.split('-');
  Life life{0, 0};
  if (begin.getAsInteger(10, life.begin) || end.getAsInteger(10, life.end))
    text.fail("expected a life BEGIN-END, got '" + word + "'");
  return life;
}

llvm::Expected<PackingProblem> PackingProblem::parse(ProblemText &text) {
  PackingProblem problem;
  while (text.next()) {
    llvm::StringRef key = text.word();
    if (key == "alignment") {
      problem.alignment = text.integer();
    } else if (key == "item") {
      PackItem item;
      item.name = text.word().str();
      if (text.accept("size"))
        item.size = text.integer();
      if (text.accept("lives"))
        while (!text.atEnd())
          item.lives.push_back(parseLife(text));
      problem.items.push_back(std::move(item));
    } else {
      text.fail("unknown statement '" + key + "'");
    }
  }
  if (Error error = text.takeError())
    return error;
  return problem;
}

std::string PackingProblem::toText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "problem packing\nalignment " << alignment << '\n';
  for (const PackItem &item : items) {
    os << "item " << item.name << " size " << item.size << " lives";
    for (auto [begin, end] : item.lives)
      os << ' ' << begin << '-' << end;
    os << '\n';
  }
  return text;
}

Error PackingProblem::check() const {
  if (alignment <= 0 || alignment % 64 != 0)
    return solverError("the alignment is " + Twine(alignment) + ", expected a multiple of 64");
  unsigned __int128 sum = 0;
  for (const PackItem &item : items) {
    if (item.size < 0)
      return solverError("item '" + item.name + "' has " + Twine(item.size) + " bytes");
    if (item.lives.empty())
      return solverError("item '" + item.name + "' never lives");
    int64_t last = 0;
    for (auto [begin, end] : item.lives) {
      if (begin < last || end <= begin)
        return solverError("item '" + item.name + "' has the life " + Twine(begin) + "-" + Twine(end) +
                           ", expected one that is not empty and follows position " + Twine(last));
      last = end;
    }
    sum += item.size + alignment;
  }
  if (sum >> 61)
    return solverError("the items are too large to add");
  return Error::success();
}

bool PackingProblem::liveTogether(unsigned a, unsigned b) const {
  llvm::ArrayRef<Life> left = items[a].lives, right = items[b].lives;
  while (!left.empty() && !right.empty()) {
    if (left.front().begin < right.front().end && right.front().begin < left.front().end)
      return true;
    if (left.front().end < right.front().end)
      left = left.drop_front();
    else
      right = right.drop_front();
  }
  return false;
}

int64_t PackingProblem::computeLowerBound() const {
  std::vector<std::pair<int64_t, int64_t>> changes; // an end sorts before a begin at the same position
  for (unsigned item = 0; item < items.size(); ++item)
    for (auto [begin, end] : items[item].lives) {
      changes.push_back({begin, alignedSize(item)});
      changes.push_back({end, -alignedSize(item)});
    }
  llvm::sort(changes);
  int64_t now = 0, most = 0;
  for (auto [position, delta] : changes)
    most = std::max(most, now += delta);
  return most;
}

Error PackingProblem::verify(const Packing &packing) const {
  if (packing.offsets.size() != items.size())
    return solverError("there are " + Twine(packing.offsets.size()) + " offsets for " + Twine(items.size()) + " items");
  if (packing.lowerBound != computeLowerBound())
    return solverError("the lower bound is " + Twine(computeLowerBound()) + ", not " + Twine(packing.lowerBound));
  for (unsigned a = 0; a < items.size(); ++a) {
    int64_t offset = packing.offsets[a], end = offset + items[a].size;
    if (offset < 0 || offset % alignment != 0 || end > packing.arena)
      return solverError("item '" + items[a].name + "' at " + Twine(offset) +
                         " is not aligned or leaves the arena of " + Twine(packing.arena) + " bytes");
    for (unsigned b = 0; b < a; ++b) {
      int64_t other = packing.offsets[b];
      if (other < end && offset < other + items[b].size && liveTogether(a, b))
        return solverError("items '" + items[b].name + "' and '" + items[a].name + "' are alive together and overlap");
    }
  }
  return Error::success();
}

std::string Packing::toText(const PackingProblem &problem) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto [item, offset] : llvm::zip(problem.items, offsets))
    os << item.name << " at " << offset << '\n';
  int64_t permille = lowerBound == 0 ? 1000 : (arena * 1000 + lowerBound - 1) / lowerBound;
  os << "arena " << arena << " bytes, lower bound " << lowerBound << ", ratio " << permille / 1000 << '.'
     << llvm::Twine(permille % 1000 + 1000).str().substr(1) << '\n';
  return text;
}
