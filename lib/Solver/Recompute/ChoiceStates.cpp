#include "ChoiceStates.h"
#include <algorithm>

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
      weight.saved += prices.perByte[peak] * peaks[peak].saved[index];
      weight.moved += prices.perByte[peak] * peaks[peak].moved[index];
      weight.recomputed += prices.perByte[peak] * peaks[peak].recomputed[index];
    }
  }
  return weights;
}

ChoiceStates::ChoiceStates(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks)
    : problem(problem), peaks(peaks), sets(problem.values.size() + 1), states(problem.values.size() + 1) {
  listed = list();
  if (!listed)
    return;
  states[0].resize(1);
  used.resize(states.size());
  for (size_t place = 0; place < states.size(); ++place)
    used[place].resize(states[place].size() * peaks.size());
  least = used;
  findLeast();
}

unsigned ChoiceStates::stateOf(unsigned place, Wanted wanted) {
  auto [found, isNew] = sets[place].try_emplace(std::move(wanted), states[place].size());
  if (isNew)
    states[place].emplace_back();
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
      states[place][number] = state;
    }
    sets[place].clear();
    inAll += states[index].size();
    if (states[index].size() > maxStates || inAll > maxInAll)
      return false;
  }
  return true;
}

/// The fewest bytes at each peak; those of two peaks may be of two completions.
void ChoiceStates::findLeast() {
  for (unsigned place = 1; place < states.size(); ++place)
    for (unsigned number = 0; number < states[place].size(); ++number)
      for (unsigned peak = 0; peak < peaks.size(); ++peak) {
        const State &state = states[place][number];
        const BytePeak &at = peaks[peak];
        unsigned index = place - 1;
        int64_t keeps = !state.decides                      ? 0
                        : problem.values[index].copyNs >= 0 ? std::min(at.saved[index], at.moved[index])
                                                            : at.saved[index];
        int64_t bytes = minBytes(index, state.kept, peak) + keeps;
        if (state.recomputed != none)
          bytes = std::min(bytes, minBytes(index, state.recomputed, peak) + at.recomputed[index]);
        least[place][number * peaks.size() + peak] = bytes;
      }
}

void ChoiceStates::price(const ChoicePrices &prices) {
  std::vector<ValueWeight> weights = weigh(problem, peaks, prices);
  for (unsigned place = 1; place < states.size(); ++place) {
    unsigned index = place - 1;
    const ForwardValue &value = problem.values[index];
    const ValueWeight &weight = weights[index];
    for (unsigned number = 0; number < states[place].size(); ++number) {
      State &state = states[place][number];
      state.fate = Fate::Saved;
      state.weight = states[index][state.kept].weight + (state.decides ? weight.saved : 0);
      if (state.decides && value.copyNs >= 0 && weight.moved < weight.saved) {
        state.fate = Fate::Moved;
        state.weight += weight.moved - weight.saved;
      }
      if (state.recomputed != none)
        if (__int128 again = states[index][state.recomputed].weight + weight.recomputed; again < state.weight) {
          state.fate = Fate::Recomputed;
          state.weight = again;
        }
      unsigned next = state.fate == Fate::Recomputed ? state.recomputed : state.kept;
      const State &rest = states[index][next];
      state.recomputeNs = rest.recomputeNs + (state.fate == Fate::Recomputed ? value.cost : 0);
      state.copyNs = rest.copyNs + (state.fate == Fate::Moved ? value.copyNs : 0);
      for (unsigned peak = 0; peak < peaks.size(); ++peak) {
        const BytePeak &at = peaks[peak];
        int64_t here = !state.decides                   ? 0
                       : state.fate == Fate::Saved      ? at.saved[index]
                       : state.fate == Fate::Recomputed ? at.recomputed[index]
                                                        : at.moved[index];
        used[place][number * peaks.size() + peak] = bytes(index, next, peak) + here;
      }
    }
  }
}

void ChoiceStates::complete(unsigned place, unsigned state, std::vector<bool> &saved, std::vector<bool> &moved) const {
  for (; place > 0; --place) {
    const State &here = states[place][state];
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
