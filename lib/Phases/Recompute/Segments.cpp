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
  findBytesBeside(pair, place);
  findCandidates();
  addUpBytes();
}

/// Gradients of the floats that an op of the forward reads and makes. An op that fuses has them in one pass.
static int64_t countGradientBytes(Operation &op) {
  auto count = [](ValueRange values) {
    int64_t bytes = 0;
    for (Value value : values)
      bytes += value.getDefiningOp() && isa<FloatType>(getElementTypeOrSelf(value)) ? getByteSize(value) : 0;
    return bytes;
  };
  int64_t operands = count(op.getOperands()), results = count(op.getResults());
  return getCost(&op).fusable ? std::max(operands, results) : operands + results;
}

void Segments::findBytesBeside(const FragmentPair &pair, const DenseMap<Operation *, unsigned> &place) {
  beside.assign(places + 1, 0);
  bool grows = pair.getBackwardRun()->getParentOfType<LoopOp>().getCount() == 1;
  for (BlockArgument argument : pair.getForward().getBlock().getArguments()) {
    if (!grows || !pair.isMadeBeforeLoop(argument) || !isa<FloatType>(getElementTypeOrSelf(argument)))
      continue;
    unsigned last = 0;
    for (Operation *user : argument.getUsers())
      if (auto found = place.find(user); found != place.end())
        last = std::max(last, found->second);
    beside[last] += getByteSize(argument);
  }
  for (unsigned at = places; at > 0; --at)
    beside[at - 1] += beside[at];
  for (Operation &op : pair.getForward().getBlock().without_terminator())
    beside[place.lookup(&op)] += countGradientBytes(op);
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
  residualsBefore.assign(count, 0);
  for (const PlacedValue &value : values)
    for (size_t candidate = count; value.isResidual && candidate > 0 && candidates[candidate - 1] > value.made;
         --candidate)
      residualsBefore[candidate - 1] += value.bytes;
  std::vector<int64_t> leaves(places + 1);
  for (size_t from = 0; from < count; ++from) {
    std::fill(leaves.begin(), leaves.end(), 0);
    int64_t live = 0, needed = 0, most = 0;
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
        most = std::max(most, needed + beside[place]);
      }
      crossing[from][to] = live;
      residuals[from][to] = most;
    }
  }
}

/// The cuts that save least among those of which each segment is allowed.
std::optional<Segments::Cutting> Segments::cutWhere(Allowed allows) const {
  size_t count = candidates.size();
  std::vector<int64_t> saved(count, -1);
  std::vector<size_t> before(count, 0);
  saved[0] = 0;
  for (size_t to = 1; to < count; ++to)
    for (size_t from = 0; from < to; ++from) {
      if (saved[from] < 0 || !allows(saved[from], from, to))
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

/// No segment, with what is saved before it, has more than `peak`.
std::optional<Segments::Cutting> Segments::cutBelow(int64_t peak) const {
  return cutWhere([&](int64_t saved, size_t from, size_t to) { return saved + residuals[from][to] <= peak; });
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

std::vector<std::vector<unsigned>> Segments::findEvenCuts() const {
  std::vector<std::vector<unsigned>> found;
  for (int64_t most = residualsBefore.back() / 2; most > 0; most /= 2) {
    std::optional<Cutting> cutting = cutWhere([&](int64_t, size_t from, size_t to) {
      return to == from + 1 || residualsBefore[to] - residualsBefore[from] <= most;
    });
    if (!found.empty() && found.back() == cutting->cuts)
      break;
    found.push_back(cutting->cuts);
  }
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
