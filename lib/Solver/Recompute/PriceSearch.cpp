// Prices of single peaks by LARAC, then of all together by a subgradient ascent; prices are integers, so that the
// outcome is the same on every machine.
#include "PriceSearch.h"
#include "ChoiceDraft.h"
#include "MinimumCut.h"
#include "llvm/ADT/STLExtras.h"

using namespace par;

/// More than all bytes, or all ns, together.
static constexpr __int128 large = __int128(1) << 51;

/// The unit of ns in prices of the ascent: a price errs by less than 1 ns for all bytes together.
static constexpr __int128 fine = __int128(1) << 40;
static constexpr __int128 highest = fine << 12;

RecomputeChoice par::cheapestByCut(const RecomputeProblem &problem, const std::vector<BytePeak> &peaks,
                                   const ChoicePrices &prices) {
  // A value has two vertices: one means that it is there (saved, moved or recomputed), the other that it is recomputed.
  std::vector<ValueWeight> weights = weigh(problem, peaks, prices);
  unsigned count = problem.values.size(), source = 2 * count, sink = source + 1;
  MinimumCut cut(2 * count + 2);
  auto isMoved = [&](unsigned index) {
    return problem.values[index].copyNs >= 0 && weights[index].moved < weights[index].saved;
  };
  for (auto [index, value] : llvm::enumerate(problem.values)) {
    if (value.isAvailable)
      continue;
    unsigned there = 2 * index, again = there + 1;
    __int128 kept = isMoved(index) ? weights[index].moved : weights[index].saved;
    if (value.needed)
      cut.addEdge(source, there, MinimumCut::infinite);
    cut.addEdge(there, sink, kept);
    if (value.inputs.empty())
      continue;
    __int128 gain = kept - weights[index].recomputed;
    if (gain > 0)
      cut.addEdge(source, again, gain);
    else
      cut.addEdge(again, sink, -gain);
    cut.addEdge(again, there, MinimumCut::infinite);
    for (unsigned input : value.inputs)
      if (!problem.values[input].isAvailable)
        cut.addEdge(again, 2 * input, MinimumCut::infinite);
  }
  cut.solve(source, sink);
  std::vector<bool> saved(count), moved(count);
  for (unsigned index = 0; index < count; ++index) {
    bool keeps = cut.onSourceSide(2 * index) && !cut.onSourceSide(2 * index + 1);
    moved[index] = keeps && isMoved(index);
    saved[index] = keeps && !moved[index];
  }
  return problem.evaluate(saved, moved);
}

PriceSearch::PriceSearch(const RecomputeProblem &problem, std::vector<BytePeak> &peaks, ChoiceStates &states)
    : problem(problem), peaks(peaks), states(states) {
  moves = llvm::any_of(problem.values, [](const ForwardValue &value) { return value.copyNs >= 0; });
}

RecomputeChoice PriceSearch::cheapest(const ChoicePrices &at) {
  RecomputeChoice choice;
  if (states.areListed()) {
    states.price(peaks, at);
    choice = states.cheapest();
  } else {
    choice = cheapestByCut(problem, peaks, at);
  }
  offer(choice);
  return choice;
}

void PriceSearch::offer(const RecomputeChoice &choice) {
  if (choice.cost >= 0 && (!best || choice.cost < best->cost) && problem.fits(choice, peaks))
    best = choice;
}

/// The Lagrangian of a choice, in units of `perNs`.
__int128 PriceSearch::valueOf(const RecomputeChoice &choice, const ChoicePrices &at) const {
  __int128 value = at.perNs * choice.recomputeNs + at.perCopyOut * (choice.copyNs - problem.hiddenForward) +
                   at.perCopyIn * (choice.copyNs - problem.hiddenBackward);
  for (auto [peak, price] : llvm::zip(peaks, at.perByte))
    if (price != 0)
      value += price * (bytesAt(peak, choice) - peak.limit);
  return value;
}

/// Takes the prices if their bound is the best so far.
void PriceSearch::take(const ChoicePrices &at, __int128 value) {
  int64_t found = value <= 0 ? 0 : static_cast<int64_t>((value + at.perNs - 1) / at.perNs);
  if (found < bound || (found == bound && llvm::any_of(prices.perByte, [](__int128 price) { return price != 0; })))
    return;
  bound = found;
  prices = at;
}

/// The best price of one peak, by LARAC: at the price at which two choices on both sides of the limit cost the same, a
/// cheaper choice replaces one of them.
bool PriceSearch::priceOne(unsigned peak, bool chargesCopies) {
  auto priced = [&](__int128 perByte, __int128 perNs) {
    ChoicePrices at{perNs, std::vector<__int128>(peaks.size(), 0), 0, 0};
    at.perByte[peak] = perByte;
    at.perCopyOut = at.perCopyIn = chargesCopies ? perNs : 0;
    return at;
  };
  int64_t limit = peaks[peak].limit;
  auto bytes = [&](const RecomputeChoice &choice) { return bytesAt(peaks[peak], choice); };
  auto time = [&](const RecomputeChoice &choice) {
    return choice.recomputeNs + (chargesCopies ? 2 * choice.copyNs : 0);
  };
  RecomputeChoice fast = cheapest(priced(1, large)), small = cheapest(priced(large, 1));
  if (bytes(small) > limit) {
    minimum = {bytes(small), limit};
    return false;
  }
  if (bytes(fast) <= limit) {
    take(priced(0, 1), valueOf(fast, priced(0, 1)));
    return true;
  }
  while (true) {
    ChoicePrices at = priced(time(small) - time(fast), bytes(fast) - bytes(small));
    __int128 value = valueOf(small, at);
    RecomputeChoice middle = cheapest(at);
    if (valueOf(middle, at) >= value) {
      take(at, value);
      return true;
    }
    (bytes(middle) <= limit ? small : fast) = std::move(middle);
  }
}

static __int128 magnitude(__int128 value) { return value < 0 ? -value : value; }

/// How much a choice has of each price's bytes or ns beyond the limit.
std::vector<__int128> PriceSearch::slopesOf(const RecomputeChoice &choice) const {
  std::vector<__int128> slopes;
  for (const BytePeak &peak : peaks)
    slopes.push_back(bytesAt(peak, choice) - peak.limit);
  slopes.push_back(moves ? choice.copyNs - problem.hiddenForward : 0);
  slopes.push_back(moves ? choice.copyNs - problem.hiddenBackward : 0);
  return slopes;
}

/// Raises the prices of what a choice has too much of, and lowers the others, by a step that would reach the best known
/// cost if the bound were linear (Polyak). False if there is none.
bool PriceSearch::climb(ChoicePrices &at, const RecomputeChoice &choice, int halvings) const {
  std::vector<__int128> slopes = slopesOf(choice);
  __int128 value = valueOf(choice, at), most = 0, squares = 0;
  for (__int128 slope : slopes)
    most = std::max(most, magnitude(slope));
  int shift = 0;
  while (most >> shift >= __int128(1) << 30)
    ++shift;
  for (__int128 slope : slopes)
    squares += (slope >> shift) * (slope >> shift);
  __int128 target = fine * (best ? best->cost : 2 * bound + 1);
  if (squares == 0 || target <= value)
    return false;
  auto step = [&](__int128 &price, __int128 slope, __int128 highestPrice) {
    __int128 change = (((target - value) * (slope >> shift)) / squares) >> (shift + halvings);
    price = std::clamp<__int128>(price + change, 0, highestPrice);
  };
  for (auto [price, slope] : llvm::zip(at.perByte, slopes))
    step(price, slope, highest);
  step(at.perCopyOut, slopes[peaks.size()], fine);
  step(at.perCopyIn, slopes[peaks.size() + 1], fine);
  return true;
}

/// The best choice with single values saved more.
void PriceSearch::fill() {
  if (!best)
    return;
  ChoiceDraft draft(problem, peaks, *best);
  draft.fill();
  offer(draft.take());
}

/// A round without a better bound halves later steps.
void PriceSearch::improve(int64_t tolerance, int64_t enough) {
  fill();
  if (peaks.size() < 2 && !moves)
    return;
  int rounds = states.areListed() ? 120 : 30, misses = 0;
  constexpr int patience = 6;
  auto scaled = [&](__int128 price) { return std::min(price * fine / prices.perNs, highest); };
  ChoicePrices at{fine, {}, scaled(prices.perCopyOut), scaled(prices.perCopyIn)};
  for (__int128 price : prices.perByte)
    at.perByte.push_back(scaled(price));
  int64_t filled = best ? best->cost : -1;
  for (int halvings = 0; rounds > 0 && bound < enough && !(best && best->cost - bound <= tolerance); --rounds) {
    RecomputeChoice choice = cheapest(at);
    int64_t before = bound;
    take(at, valueOf(choice, at));
    if (bound > before)
      misses = 0;
    else if (++misses % patience == 0)
      ++halvings;
    if (best && best->cost != filled) {
      fill();
      filled = best->cost;
    }
    if (!climb(at, choice, halvings))
      break;
  }
}

bool PriceSearch::addPeak(BytePeak peak) {
  if (best && bytesAt(peak, *best) > peak.limit)
    best.reset();
  peaks.push_back(std::move(peak));
  prices.perByte.push_back(0);
  for (bool charges : {false, true})
    if ((!charges || moves) && !priceOne(peaks.size() - 1, charges))
      return false;
  return true;
}
