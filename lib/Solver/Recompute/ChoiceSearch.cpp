// Labels by place from the last value to the first; the limits are counts, so that the outcome is the same on every
// machine.
#include "ChoiceSearch.h"
#include <algorithm>
#include <limits>

using namespace par;

/// Sets of wanted values at one place, and labels that are kept at one place.
static constexpr size_t maxStates = 1024, maxLabels = 4096;

ChoiceSearch::ChoiceSearch(const RecomputeProblem &problem, ChoicePrices prices, RecomputeChoice best)
    : problem(problem), prices(prices), best(std::move(best)), minDropped(std::numeric_limits<int64_t>::max()),
      sets(problem.values.size() + 1), states(problem.values.size() + 1), labels(problem.values.size() + 1) {}

unsigned ChoiceSearch::stateOf(unsigned place, Wanted wanted) {
  auto [found, isNew] = sets[place].try_emplace(std::move(wanted), states[place].size());
  if (isNew)
    states[place].emplace_back();
  return found->second;
}

/// The states that decisions lead to; false if there are too many.
bool ChoiceSearch::listStates() {
  stateOf(problem.values.size(), {});
  for (unsigned place = problem.values.size(); place > 0; --place) {
    unsigned index = place - 1;
    const ForwardValue &value = problem.values[index];
    for (const auto &[wanted, number] : sets[place]) {
      Wanted rest = wanted;
      bool isWanted = !rest.empty() && rest.back() == index;
      if (isWanted)
        rest.pop_back();
      State state;
      state.decides = (value.needed || isWanted) && !value.isAvailable;
      if (state.decides && !value.inputs.empty()) {
        Wanted more = rest;
        for (unsigned input : value.inputs)
          if (!problem.values[input].needed && !problem.values[input].isAvailable)
            more.push_back(input);
        std::sort(more.begin(), more.end());
        more.erase(std::unique(more.begin(), more.end()), more.end());
        state.recomputed = stateOf(index, std::move(more));
      }
      state.saved = stateOf(index, std::move(rest));
      states[place][number] = state;
    }
    sets[place].clear();
    if (states[index].size() > maxStates)
      return false;
  }
  return true;
}

/// The cheapest completion of each state at a place, from those at the place before.
void ChoiceSearch::complete(unsigned place) {
  const ForwardValue &value = problem.values[place - 1];
  for (State &state : states[place]) {
    const State &saved = states[place - 1][state.saved];
    int64_t bytes = state.decides ? value.bytes : 0;
    state.completesSaved = true;
    state.completion = saved.completion + prices.perByte * bytes;
    state.bytes = saved.bytes + bytes;
    state.cost = saved.cost;
    state.minBytes = saved.minBytes + bytes;
    if (state.recomputed == State::none)
      continue;
    const State &recomputed = states[place - 1][state.recomputed];
    state.minBytes = std::min(state.minBytes, recomputed.minBytes);
    __int128 weight = recomputed.completion + prices.perNs * value.cost;
    if (weight >= state.completion)
      continue;
    state.completesSaved = false;
    state.completion = weight;
    state.bytes = recomputed.bytes;
    state.cost = recomputed.cost + value.cost;
  }
}

/// A lower bound of the costs of all choices that begin with the label.
int64_t ChoiceSearch::boundOf(const Label &label, unsigned place) const {
  __int128 weight = states[place][label.state].completion + prices.perByte * (label.bytes - problem.budget);
  __int128 least = label.cost;
  if (weight > 0)
    least += (weight + prices.perNs - 1) / prices.perNs;
  return static_cast<int64_t>(least);
}

void ChoiceSearch::add(std::vector<Label> &next, unsigned place, Label label) {
  if (label.bytes + states[place][label.state].minBytes <= problem.budget && boundOf(label, place) < best.cost)
    next.push_back(label);
}

/// Labels of one state that are neither smaller nor cheaper than another go; so do those beyond `maxLabels`, the ones
/// with the highest bound.
void ChoiceSearch::prune(std::vector<Label> &next, unsigned place) {
  std::sort(next.begin(), next.end(), [](const Label &one, const Label &other) {
    return std::tie(one.state, one.bytes, one.cost, one.before, one.saves) <
           std::tie(other.state, other.bytes, other.cost, other.before, other.saves);
  });
  size_t kept = 0;
  for (size_t index = 0; index < next.size(); ++index) {
    bool isWorse = kept > 0 && next[kept - 1].state == next[index].state && next[kept - 1].cost <= next[index].cost;
    if (!isWorse)
      next[kept++] = next[index];
  }
  next.resize(kept);
  if (kept <= maxLabels)
    return;
  std::stable_sort(next.begin(), next.end(),
                   [&](const Label &one, const Label &other) { return boundOf(one, place) < boundOf(other, place); });
  minDropped = std::min(minDropped, boundOf(next[maxLabels], place));
  next.resize(maxLabels);
}

/// The choice of a label's decisions and of the cheapest completion.
RecomputeChoice ChoiceSearch::completed(unsigned place, unsigned label) const {
  std::vector<bool> saved(problem.values.size(), false);
  unsigned state = labels[place][label].state;
  for (unsigned at = place, index = label; at < problem.values.size(); ++at) {
    saved[at] = labels[at][index].saves;
    index = labels[at][index].before;
  }
  for (unsigned at = place; at > 0; --at) {
    const State &here = states[at][state];
    saved[at - 1] = here.decides && here.completesSaved;
    state = here.completesSaved ? here.saved : here.recomputed;
  }
  return problem.evaluate(std::move(saved));
}

/// From the labels at a place to those at the place before.
void ChoiceSearch::expand(unsigned place) {
  const ForwardValue &value = problem.values[place - 1];
  std::vector<Label> &next = labels[place - 1];
  for (unsigned number = 0; number < labels[place].size(); ++number) {
    const Label &label = labels[place][number];
    const State &state = states[place][label.state];
    if (!state.decides) {
      add(next, place - 1, {label.bytes, label.cost, state.saved, number, false});
      continue;
    }
    add(next, place - 1, {label.bytes + value.bytes, label.cost, state.saved, number, true});
    if (state.recomputed != State::none)
      add(next, place - 1, {label.bytes, label.cost + value.cost, state.recomputed, number, false});
  }
  prune(next, place - 1);
  for (unsigned number = 0; number < next.size(); ++number) {
    const State &state = states[place - 1][next[number].state];
    if (next[number].bytes + state.bytes <= problem.budget && next[number].cost + state.cost < best.cost)
      best = completed(place - 1, number);
  }
}

RecomputeChoice ChoiceSearch::run() {
  int64_t lagrangian = best.minCost;
  if (best.cost == lagrangian || !listStates())
    return best;
  states[0].resize(1);
  for (unsigned place = 1; place <= problem.values.size(); ++place)
    complete(place);
  labels[problem.values.size()].push_back({});
  for (unsigned place = problem.values.size(); place > 0; --place)
    expand(place);
  best.minCost = std::max(lagrangian, std::min(best.cost, minDropped));
  return best;
}
