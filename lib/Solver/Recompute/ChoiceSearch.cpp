// Labels by place from the last value to the first; the limits are counts, so that the outcome is the same on every
// machine.
#include "ChoiceSearch.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace par;

/// Labels at one place at most and at least, and decisions in all.
static constexpr size_t maxLabelsAtOnce = 4096, minLabelsAtOnce = 256, maxDecisions = size_t(1) << 23;
/// Labels of one state with which another one is compared.
static constexpr size_t maxCompared = 48;

ChoiceSearch::ChoiceSearch(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks, ChoiceStates &states,
                           const ChoicePrices &prices, std::optional<RecomputeChoice> best, int64_t bound)
    : problem(problem), peaks(peaks), states(states), prices(prices), best(std::move(best)), bound(bound),
      groups(problem.values.size() + 1), decisions(problem.values.size() + 1) {
  maxLabels = std::clamp(maxDecisions / (problem.values.size() + 1), minLabelsAtOnce, maxLabelsAtOnce);
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
int64_t ChoiceSearch::boundOf(const Label &label, unsigned place) const {
  __int128 weight = states.at(place, label.state).weight + prices.perCopyOut * (label.copyNs - problem.hiddenForward) +
                    prices.perCopyIn * (label.copyNs - problem.hiddenBackward);
  for (auto [group, left] : llvm::zip(groups[place], label.left))
    weight -= group.price * left;
  int64_t lost = problem.unhidden(label.copyNs);
  if (weight > 0)
    lost = std::max(lost, static_cast<int64_t>((weight + prices.perNs - 1) / prices.perNs));
  return label.cost + lost;
}

bool ChoiceSearch::isFeasible(const Label &label, unsigned place) const {
  for (auto [group, left] : llvm::zip(groups[place], label.left))
    if (states.minBytes(place, label.state, group.peak) > left)
      return false;
  return true;
}

/// The label at the place before `place + 1` that decides on value `place`.
void ChoiceSearch::add(std::vector<Label> &next, unsigned place, const Label &from, unsigned number, unsigned state,
                       Fate fate) {
  bool decides = states.at(place + 1, from.state).decides;
  Label label;
  label.state = state;
  label.before = number;
  label.fate = fate;
  label.cost = from.cost + (fate == Fate::Recomputed ? problem.values[place].cost : 0);
  label.copyNs = from.copyNs + (fate == Fate::Moved ? problem.values[place].copyNs : 0);
  for (const PeakGroup &group : groups[place])
    label.left.push_back(group.most); // bytes beyond what can be used are of no use
  for (auto [group, left] : llvm::zip(groups[place + 1], from.left)) {
    const BytePeak &peak = peaks[group.peak];
    int64_t bytes = !decides              ? 0
                    : fate == Fate::Saved ? peak.saved[place]
                    : fate == Fate::Moved ? peak.moved[place]
                                          : peak.recomputed[place];
    label.left[group.earlier] = std::min(label.left[group.earlier], left - bytes);
  }
  if (isFeasible(label, place) && boundOf(label, place) < bestCost())
    next.push_back(std::move(label));
}

/// Labels of one state that are better than another in nothing go; so do those beyond `maxLabels`, the ones with the
/// highest bound.
void ChoiceSearch::prune(std::vector<Label> &next, unsigned place) {
  llvm::sort(next, [](const Label &one, const Label &other) {
    return std::tie(one.state, one.cost, one.copyNs, other.left, one.before, one.fate) <
           std::tie(other.state, other.cost, other.copyNs, one.left, other.before, other.fate);
  });
  auto isWorse = [](const Label &one, const Label &other) {
    return one.cost >= other.cost && one.copyNs >= other.copyNs &&
           llvm::all_of(llvm::zip(one.left, other.left),
                        [](auto pair) { return std::get<0>(pair) <= std::get<1>(pair); });
  };
  size_t kept = 0, first = 0;
  for (size_t index = 0; index < next.size(); ++index) {
    if (kept == 0 || next[first].state != next[index].state)
      first = kept;
    size_t from = std::max(first, kept - std::min(kept, maxCompared));
    if (std::any_of(next.begin() + from, next.begin() + kept,
                    [&](const Label &other) { return isWorse(next[index], other); }))
      continue;
    if (kept != index)
      next[kept] = std::move(next[index]);
    ++kept;
  }
  next.resize(kept);
  if (kept <= maxLabels)
    return;
  std::vector<std::pair<int64_t, unsigned>> bounds;
  for (unsigned index = 0; index < next.size(); ++index)
    bounds.push_back({boundOf(next[index], place), index});
  llvm::sort(bounds);
  minDropped = std::min(minDropped, bounds[maxLabels].first);
  std::vector<Label> best;
  for (size_t rank = 0; rank < maxLabels; ++rank)
    best.push_back(std::move(next[bounds[rank].second]));
  next = std::move(best);
}

/// Takes the label's decisions with its cheapest completion, if they fit and cost less than the best choice.
void ChoiceSearch::tryCompletion(const Label &label, unsigned place, unsigned number) {
  const ChoiceStates::State &state = states.at(place, label.state);
  if (label.cost + state.recomputeNs + problem.unhidden(label.copyNs + state.copyNs) >= bestCost())
    return;
  for (auto [group, left] : llvm::zip(groups[place], label.left))
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
  std::vector<Label> next;
  for (unsigned number = 0; number < labels.size(); ++number) {
    const Label &label = labels[number];
    const ChoiceStates::State &state = states.at(place, label.state);
    add(next, index, label, number, state.kept, Fate::Saved);
    if (state.decides && problem.values[index].copyNs >= 0)
      add(next, index, label, number, state.kept, Fate::Moved);
    if (state.recomputed != ChoiceStates::none)
      add(next, index, label, number, state.recomputed, Fate::Recomputed);
  }
  prune(next, index);
  labels = std::move(next);
  for (const Label &label : labels)
    decisions[index].push_back({label.before, label.fate});
  for (unsigned number = 0; number < labels.size(); ++number)
    tryCompletion(labels[number], index, number);
}

/// A choice of a large model is good enough if it costs so much more than the bound: less than a thousandth of all that
/// may be recomputed. A search takes a second there.
static int64_t toleranceOf(const RecomputeProblem &problem) {
  constexpr size_t large = 2048;
  constexpr int64_t parts = 1024;
  if (problem.values.size() < large)
    return 0;
  int64_t all = 0;
  for (const ForwardValue &value : problem.values)
    all += value.cost;
  return all / parts;
}

std::optional<RecomputeChoice> ChoiceSearch::run() {
  if (best && best->cost <= bound)
    return best->minCost = best->cost, best;
  if (best && best->cost - bound <= toleranceOf(problem))
    return best->minCost = bound, best;
  states.price(prices);
  group();
  Label root;
  for (const PeakGroup &group : groups.back())
    root.left.push_back(std::min(group.most, peaks[group.peak].limit));
  // Peaks of one group have the same weights everywhere; the tightest limit holds for all.
  for (unsigned peak = 0; peak < peaks.size(); ++peak)
    for (auto [group, left] : llvm::zip(groups.back(), root.left))
      if (peaks[peak].saved == peaks[group.peak].saved && peaks[peak].moved == peaks[group.peak].moved &&
          peaks[peak].recomputed == peaks[group.peak].recomputed)
        left = std::min(left, peaks[peak].limit);
  labels.push_back(std::move(root));
  for (unsigned place = problem.values.size(); place > 0; --place)
    expand(place);
  if (!best && minDropped < std::numeric_limits<int64_t>::max())
    return RecomputeChoice::notFound(std::max(bound, minDropped));
  if (best)
    best->minCost = std::max(bound, std::min(best->cost, minDropped));
  return best;
}
