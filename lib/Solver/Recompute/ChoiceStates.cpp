// Lists the states, finds their cheapest completions at given prices, and adds up the bytes of these.
#include "ChoiceStates.h"
#include <algorithm>
#include <tuple>

using namespace par;

/// States at one place, and in all.
static constexpr size_t maxStates = 1024, maxInAll = size_t(1) << 20;

std::vector<ValueWeight> par::weigh(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks,
                                    const ChoicePrices &prices) {
  std::vector<ValueWeight> weights(problem.values.size());
  for (size_t index = 0; index < weights.size(); ++index) {
    const ForwardValue &value = problem.values[index];
    ValueWeight &weight = weights[index];
    weight.recomputed = prices.perNs * value.cost;
    weight.moved = (prices.perCopyOut + prices.perCopyIn) * std::max<int64_t>(value.copyNs, 0);
    for (size_t peak = 0; peak < peaks.size(); ++peak) {
      if (prices.perByte[peak] == 0)
        continue;
      weight.saved += prices.perByte[peak] * peaks[peak].saved[index];
      weight.moved += prices.perByte[peak] * peaks[peak].moved[index];
      weight.recomputed += prices.perByte[peak] * peaks[peak].recomputed[index];
    }
  }
  return weights;
}

ChoiceStates::ChoiceStates(const RecomputeProblem &problem)
    : problem(problem), sets(problem.values.size() + 1), byPlace(problem.values.size() + 1) {
  listed = list();
  byPlace[0].resize(1);
  for (const std::vector<State> &here : byPlace) {
    first.push_back(states.size());
    if (listed)
      states.insert(states.end(), here.begin(), here.end());
  }
  sets = {};
  byPlace = {};
}

unsigned ChoiceStates::stateOf(unsigned place, Wanted wanted) {
  auto [found, isNew] = sets[place].try_emplace(std::move(wanted), byPlace[place].size());
  if (isNew)
    byPlace[place].emplace_back();
  return found->second;
}

/// The states that decisions lead to; false if there are too many.
bool ChoiceStates::list() {
  stateOf(problem.values.size(), {});
  size_t inAll = 0;
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
      state.kept = stateOf(index, std::move(rest));
      byPlace[place][number] = state;
    }
    sets[place].clear();
    inAll += byPlace[index].size();
    if (byPlace[index].size() > maxStates || inAll > maxInAll)
      return false;
  }
  return true;
}

void ChoiceStates::price(const std::vector<BytePeak> &peaks, const ChoicePrices &prices) {
  std::vector<ValueWeight> weights = weigh(problem, peaks, prices);
  for (unsigned place = 1; place < first.size(); ++place) {
    const ForwardValue &value = problem.values[place - 1];
    const ValueWeight &weight = weights[place - 1];
    bool moves = value.copyNs >= 0 && weight.moved < weight.saved;
    const State *before = &states[first[place - 1]];
    for (size_t number = first[place]; number < (place + 1 < first.size() ? first[place + 1] : states.size());
         ++number) {
      State &state = states[number];
      state.fate = Fate::Saved;
      state.weight = before[state.kept].weight;
      if (!state.decides)
        continue;
      state.fate = moves ? Fate::Moved : Fate::Saved;
      state.weight += moves ? weight.moved : weight.saved;
      if (state.recomputed == none)
        continue;
      if (__int128 again = before[state.recomputed].weight + weight.recomputed; again < state.weight) {
        state.fate = Fate::Recomputed;
        state.weight = again;
      }
    }
  }
}

/// The bytes and times of a state's cheapest completion, and the fewest bytes at each peak; those of two peaks may be
/// of two completions.
void ChoiceStates::addUp(unsigned place, unsigned number, const std::vector<BytePeak> &peaks) {
  unsigned index = place - 1;
  const State &state = at(place, number);
  const ForwardValue &value = problem.values[index];
  unsigned next = state.fate == Fate::Recomputed ? state.recomputed : state.kept;
  auto &[recomputeNs, copyNs] = ns[first[place] + number];
  std::tie(recomputeNs, copyNs) = times(index, next);
  recomputeNs += state.fate == Fate::Recomputed ? value.cost : 0;
  copyNs += state.fate == Fate::Moved ? value.copyNs : 0;
  for (unsigned peak = 0; peak < peaks.size(); ++peak) {
    const BytePeak &at = peaks[peak];
    int64_t here = !state.decides                   ? 0
                   : state.fate == Fate::Saved      ? at.saved[index]
                   : state.fate == Fate::Recomputed ? at.recomputed[index]
                                                    : at.moved[index];
    int64_t keeps = !state.decides      ? 0
                    : value.copyNs >= 0 ? std::min(at.saved[index], at.moved[index])
                                        : at.saved[index];
    int64_t fewest = minBytes(index, state.kept, peak) + keeps;
    if (state.recomputed != none)
      fewest = std::min(fewest, minBytes(index, state.recomputed, peak) + at.recomputed[index]);
    used[(first[place] + number) * count + peak] = bytes(index, next, peak) + here;
    least[(first[place] + number) * count + peak] = fewest;
  }
}

void ChoiceStates::addUp(const std::vector<BytePeak> &peaks) {
  count = peaks.size();
  ns.assign(states.size(), {0, 0});
  used.assign(states.size() * count, 0);
  least = used;
  for (unsigned place = 1; place < first.size(); ++place) {
    size_t end = place + 1 < first.size() ? first[place + 1] : states.size();
    for (unsigned number = 0; number < end - first[place]; ++number)
      addUp(place, number, peaks);
  }
}

void ChoiceStates::complete(unsigned place, unsigned state, std::vector<bool> &saved, std::vector<bool> &moved) const {
  for (; place > 0; --place) {
    const State &here = at(place, state);
    saved[place - 1] = here.decides && here.fate == Fate::Saved;
    moved[place - 1] = here.decides && here.fate == Fate::Moved;
    state = here.fate == Fate::Recomputed ? here.recomputed : here.kept;
  }
}

RecomputeChoice ChoiceStates::cheapest() const {
  std::vector<bool> saved(problem.values.size()), moved(problem.values.size());
  complete(problem.values.size(), 0, saved, moved);
  return problem.evaluate(saved, moved);
}
