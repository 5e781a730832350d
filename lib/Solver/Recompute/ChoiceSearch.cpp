// Labels by place from the last value to the first; the limits are counts, so that the outcome is the same on every
// machine.
#include "ChoiceSearch.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <numeric>
#include <tuple>

using namespace par;

/// Labels at one place: of a problem that is to be solved exactly at most and at least, and decisions in all; of one
/// for which a choice near the optimum is good enough.
static constexpr size_t maxLabelsAtOnce = 4096, minLabelsAtOnce = 256, maxDecisions = size_t(1) << 23, fewLabels = 128;
/// Labels of one state with which another one is compared.
static constexpr size_t maxCompared = 48;

ChoiceSearch::ChoiceSearch(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks, ChoiceStates &states,
                           const ChoicePrices &prices, Known known)
    : problem(problem), peaks(peaks), states(states), prices(prices), best(std::move(known.best)), bound(known.bound),
      enough(known.enough), tolerance(known.tolerance), groups(problem.values.size() + 1),
      decisions(problem.values.size() + 1) {
  maxLabels = tolerance > 0 ? fewLabels
                            : std::clamp(maxDecisions / (problem.values.size() + 1), minLabelsAtOnce, maxLabelsAtOnce);
}

ChoiceSearch::Labels ChoiceSearch::Labels::pick(llvm::ArrayRef<unsigned> numbers) const {
  Labels picked;
  picked.groups = groups;
  picked.all.reserve(numbers.size());
  picked.left.reserve(numbers.size() * groups);
  for (unsigned number : numbers) {
    picked.all.push_back(all[number]);
    llvm::append_range(picked.left, leftOf(number));
  }
  return picked;
}

/// From the first place, where no value is undecided and all peaks are one, to the last.
void ChoiceSearch::group() {
  std::vector<unsigned> groupOf(peaks.size(), 0);
  groups[0].push_back({});
  for (__int128 price : prices.perByte)
    groups[0][0].price += price;
  for (size_t place = 1; place < groups.size(); ++place) {
    size_t index = place - 1;
    bool counts = !problem.values[index].isAvailable;
    std::map<std::array<int64_t, 4>, unsigned> known;
    for (unsigned peak = 0; peak < peaks.size(); ++peak) {
      const BytePeak &at = peaks[peak];
      std::array<int64_t, 4> key{groupOf[peak], 0, 0, 0};
      if (counts)
        key = {groupOf[peak], at.saved[index], at.moved[index], at.recomputed[index]};
      auto [found, isNew] = known.try_emplace(key, groups[place].size());
      if (isNew) {
        int64_t most = std::max({key[1], key[2], key[3]}) + groups[index][groupOf[peak]].most;
        groups[place].push_back({peak, groupOf[peak], 0, most});
      }
      groups[place][found->second].price += prices.perByte[peak];
      groupOf[peak] = found->second;
    }
  }
}

/// A lower bound of the costs of all choices that begin with the label.
int64_t ChoiceSearch::boundOf(const Label &label, llvm::ArrayRef<int64_t> left, unsigned place) const {
  __int128 weight = states.at(place, label.state).weight + prices.perCopyOut * (label.copyNs - problem.hiddenForward) +
                    prices.perCopyIn * (label.copyNs - problem.hiddenBackward);
  for (auto [group, bytes] : llvm::zip(groups[place], left))
    weight -= group.price * bytes;
  int64_t lost = problem.unhidden(label.copyNs);
  if (weight > 0)
    lost = std::max(lost, static_cast<int64_t>((weight + prices.perNs - 1) / prices.perNs));
  return label.cost + lost;
}

bool ChoiceSearch::isFeasible(unsigned state, llvm::ArrayRef<int64_t> left, unsigned place) const {
  for (auto [group, bytes] : llvm::zip(groups[place], left))
    if (states.minBytes(place, state, group.peak) > bytes)
      return false;
  return true;
}

/// The label at the place before `place + 1` that decides on value `place`.
void ChoiceSearch::add(Labels &next, unsigned place, unsigned number, unsigned state, Fate fate) const {
  const Label &from = labels.all[number];
  bool decides = states.at(place + 1, from.state).decides;
  Label label;
  label.state = state;
  label.before = number;
  label.fate = fate;
  label.cost = from.cost + (fate == Fate::Recomputed ? problem.values[place].cost : 0);
  label.copyNs = from.copyNs + (fate == Fate::Moved ? problem.values[place].copyNs : 0);
  size_t begin = next.left.size();
  for (const PeakGroup &group : groups[place])
    next.left.push_back(group.most); // bytes beyond what can be used are of no use
  llvm::MutableArrayRef<int64_t> left = llvm::MutableArrayRef(next.left).drop_front(begin);
  for (auto [group, bytesLeft] : llvm::zip(groups[place + 1], labels.leftOf(number))) {
    const BytePeak &peak = peaks[group.peak];
    int64_t bytes = !decides              ? 0
                    : fate == Fate::Saved ? peak.saved[place]
                    : fate == Fate::Moved ? peak.moved[place]
                                          : peak.recomputed[place];
    left[group.earlier] = std::min(left[group.earlier], bytesLeft - bytes);
  }
  if (isFeasible(label.state, left, place) && boundOf(label, left, place) < bestCost() - tolerance)
    next.all.push_back(label);
  else
    next.left.resize(begin);
}

/// The labels that are better in something than any other one of their state.
std::vector<unsigned> ChoiceSearch::findUndominated(const Labels &next) const {
  std::vector<unsigned> order(next.all.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    const Label &one = next.all[a], &other = next.all[b];
    if (auto [left, right] =
            std::pair(std::tie(one.state, one.cost, one.copyNs), std::tie(other.state, other.cost, other.copyNs));
        left != right)
      return left < right;
    if (llvm::ArrayRef<int64_t> left = next.leftOf(a), right = next.leftOf(b); left != right)
      return std::lexicographical_compare(right.begin(), right.end(), left.begin(), left.end());
    return std::tie(one.before, one.fate) < std::tie(other.before, other.fate);
  });
  auto isWorse = [&](unsigned a, unsigned b) {
    return next.all[a].copyNs >= next.all[b].copyNs &&
           llvm::all_of(llvm::zip(next.leftOf(a), next.leftOf(b)),
                        [](auto pair) { return std::get<0>(pair) <= std::get<1>(pair); });
  };
  std::vector<unsigned> kept;
  size_t first = 0;
  for (unsigned number : order) {
    if (kept.empty() || next.all[kept.back()].state != next.all[number].state)
      first = kept.size();
    size_t from = std::max(first, kept.size() - std::min(kept.size(), maxCompared));
    if (std::none_of(kept.begin() + from, kept.end(), [&](unsigned other) { return isWorse(number, other); }))
      kept.push_back(number);
  }
  return kept;
}

/// Labels of one state that are better than another in nothing go; so do those beyond `maxLabels`, the ones with the
/// highest bound.
void ChoiceSearch::prune(Labels &next, unsigned place) {
  std::vector<unsigned> kept = findUndominated(next);
  if (kept.size() > maxLabels) {
    std::vector<std::pair<int64_t, unsigned>> bounds;
    for (auto [rank, number] : llvm::enumerate(kept))
      bounds.push_back({boundOf(next.all[number], next.leftOf(number), place), rank});
    llvm::sort(bounds);
    minDropped = std::min(minDropped, bounds[maxLabels].first);
    std::vector<unsigned> lowest;
    for (size_t rank = 0; rank < maxLabels; ++rank)
      lowest.push_back(kept[bounds[rank].second]);
    kept = std::move(lowest);
  }
  next = next.pick(kept);
}

/// Takes the label's decisions with its cheapest completion, if they fit and cost less than the best choice.
void ChoiceSearch::tryCompletion(unsigned place, unsigned number) {
  const Label &label = labels.all[number];
  auto [recomputeNs, copyNs] = states.times(place, label.state);
  if (label.cost + recomputeNs + problem.unhidden(label.copyNs + copyNs) >= bestCost())
    return;
  for (auto [group, left] : llvm::zip(groups[place], labels.leftOf(number)))
    if (states.bytes(place, label.state, group.peak) > left)
      return;
  std::vector<bool> saved(problem.values.size()), moved(problem.values.size());
  for (unsigned at = place, index = number; at < problem.values.size(); ++at) {
    const Decision &decision = decisions[at][index];
    saved[at] = decision.fate == Fate::Saved;
    moved[at] = decision.fate == Fate::Moved;
    index = decision.before;
  }
  states.complete(place, label.state, saved, moved);
  best = problem.evaluate(saved, moved);
}

/// From the labels at a place to those at the place before.
void ChoiceSearch::expand(unsigned place) {
  unsigned index = place - 1;
  Labels next;
  next.groups = groups[index].size();
  for (unsigned number = 0; number < labels.all.size(); ++number) {
    const ChoiceStates::State &state = states.at(place, labels.all[number].state);
    add(next, index, number, state.kept, Fate::Saved);
    if (state.decides && problem.values[index].copyNs >= 0)
      add(next, index, number, state.kept, Fate::Moved);
    if (state.recomputed != ChoiceStates::none)
      add(next, index, number, state.recomputed, Fate::Recomputed);
  }
  prune(next, index);
  labels = std::move(next);
  for (const Label &label : labels.all)
    decisions[index].push_back({label.before, label.fate});
  for (unsigned number = 0; number < labels.all.size(); ++number)
    tryCompletion(index, number);
}

std::optional<RecomputeChoice> ChoiceSearch::run() {
  if (best && best->cost - bound <= tolerance)
    return best->minCost = std::min(bound, best->cost), best;
  states.price(peaks, prices);
  states.addUp(peaks);
  group();
  labels.groups = groups.back().size();
  labels.all.push_back({});
  for (const PeakGroup &group : groups.back())
    labels.left.push_back(std::min(group.most, peaks[group.peak].limit));
  // Peaks of one group have the same weights everywhere; the tightest limit holds for all.
  for (unsigned peak = 0; peak < peaks.size(); ++peak)
    for (auto [group, left] : llvm::zip(groups.back(), labels.left))
      if (peaks[peak].saved == peaks[group.peak].saved && peaks[peak].moved == peaks[group.peak].moved &&
          peaks[peak].recomputed == peaks[group.peak].recomputed)
        left = std::min(left, peaks[peak].limit);
  for (unsigned place = problem.values.size(); place > 0 && !labels.all.empty(); --place)
    expand(place);
  int64_t reached = std::max(bound, std::min(bestCost() - tolerance, minDropped));
  if (best && best->cost <= enough)
    best->minCost = std::min(best->cost, reached);
  else if (minDropped < bestCost() - tolerance)
    return RecomputeChoice::notFound(reached);
  else
    return std::nullopt;
  return best;
}
