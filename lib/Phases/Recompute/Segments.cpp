// Cuts of a forward into segments that backward recomputes one after the other: a shortest path over the cheapest
// places for a cut, once for each bound of the peak.
#include "Segments.h"

#include "par/Dialect/Interfaces/Cost.h"

using namespace mlir;

namespace par {

/// Cuts that are tried grow with the square of this.
static constexpr size_t maxCandidates = 512;

Segments::Segments(const FragmentPair &pair) {
  Block &body = pair.getForward().getBlock();
  ValueSet residuals = pair.getResiduals();
  llvm::DenseSet<Value> free = pair.findFree();
  DenseMap<Operation *, unsigned> place;
  for (Operation &op : body.without_terminator())
    place[&op] = places++;
  for (Operation &op : body.without_terminator())
    for (Value result : op.getResults()) {
      PlacedValue value{
          result, place[&op], place[&op], getByteSize(result), free.contains(result), residuals.contains(result)};
      for (Operation *user : result.getUsers())
        if (auto found = place.find(user); found != place.end())
          value.lastUse = std::max(value.lastUse, found->second);
      values.push_back(value);
    }
  findCandidates();
  addUpBytes();
}

/// The bytes that cross each place; candidates are the first of equal ones below both neighbours.
void Segments::findCandidates() {
  std::vector<int64_t> bytes(places + 1, 0);
  for (const PlacedValue &value : values)
    for (unsigned place = value.made + 1; !value.isFree && place <= value.lastUse; ++place)
      bytes[place] += value.bytes;
  std::vector<std::pair<int64_t, unsigned>> minima;
  for (unsigned place = 1; place < places; ++place) {
    unsigned next = place;
    while (next < places && bytes[next] == bytes[place])
      ++next;
    if (bytes[place] < bytes[place - 1] || place == 1)
      if (next >= places || bytes[next] > bytes[place])
        minima.push_back({bytes[place], place});
  }
  llvm::sort(minima);
  minima.resize(std::min(minima.size(), maxCandidates));
  candidates = {0, places};
  for (auto [size, place] : minima)
    candidates.push_back(place);
  llvm::sort(candidates);
}

void Segments::addUpBytes() {
  size_t count = candidates.size();
  crossing.assign(count, std::vector<int64_t>(count, 0));
  residuals.assign(count, std::vector<int64_t>(count, 0));
  std::vector<int64_t> leaves(places + 1);
  for (size_t from = 0; from < count; ++from) {
    std::fill(leaves.begin(), leaves.end(), 0);
    int64_t live = 0, needed = 0;
    unsigned place = candidates[from];
    auto value =
        llvm::lower_bound(values, place, [](const PlacedValue &one, unsigned made) { return one.made < made; });
    for (size_t to = from + 1; to < count; ++to) {
      for (; place < candidates[to]; ++place) {
        for (; value != values.end() && value->made == place; ++value) {
          needed += value->isResidual ? value->bytes : 0;
          if (value->isFree || value->lastUse == place)
            continue;
          live += value->bytes;
          leaves[value->lastUse] += value->bytes;
        }
        live -= leaves[place];
      }
      crossing[from][to] = live;
      residuals[from][to] = needed;
    }
  }
}

/// The cuts that save least among those of which no segment, with what is saved before it, has more than `peak`.
std::optional<Segments::Cutting> Segments::cutBelow(int64_t peak) const {
  size_t count = candidates.size();
  std::vector<int64_t> saved(count, -1);
  std::vector<size_t> before(count, 0);
  saved[0] = 0;
  for (size_t to = 1; to < count; ++to)
    for (size_t from = 0; from < to; ++from) {
      if (saved[from] < 0 || saved[from] + residuals[from][to] > peak)
        continue;
      int64_t here = saved[from] + crossing[from][to];
      if (saved[to] < 0 || here < saved[to]) {
        saved[to] = here;
        before[to] = from;
      }
    }
  if (saved[count - 1] < 0)
    return std::nullopt;
  Cutting cutting;
  cutting.saved = saved[count - 1];
  for (size_t to = count - 1; to > 0; to = before[to]) {
    cutting.peak = std::max(cutting.peak, saved[before[to]] + residuals[before[to]][to]);
    if (before[to] > 0)
      cutting.cuts.push_back(candidates[before[to]]);
  }
  std::reverse(cutting.cuts.begin(), cutting.cuts.end());
  return cutting;
}

std::vector<std::vector<unsigned>> Segments::findCuts() const {
  std::vector<std::vector<unsigned>> found;
  int64_t bound = residuals[0].back();
  while (std::optional<Cutting> cutting = cutBelow(bound)) {
    if (found.empty() || found.back() != cutting->cuts)
      found.push_back(cutting->cuts);
    bound = std::min(cutting->peak - 1, bound - bound / 32);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

ValueSet Segments::findCrossing(ArrayRef<unsigned> cuts) const {
  ValueSet saved;
  for (const PlacedValue &value : values)
    if (!value.isFree && llvm::any_of(cuts, [&](unsigned cut) { return value.made < cut && cut <= value.lastUse; }))
      saved.insert(value.value);
  return saved;
}

} // namespace par
