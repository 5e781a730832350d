// Sampling as transformers does it: temperature, then top-k, then top-p, then a draw by the cumulated probabilities of
// the tokens, larger ones first. Nothing is sorted: what adds up to a mass is found by halves.
#include "Sampling.h"

#include "par/files/Random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

namespace par::core {

namespace {

/// Larger logits first, of equal ones the first; NaN last.
bool isBefore(std::span<const float> logits, int64_t a, int64_t b) {
  float left = logits[static_cast<size_t>(a)], right = logits[static_cast<size_t>(b)];
  if (std::isnan(left) || std::isnan(right))
    return std::isnan(left) == std::isnan(right) ? a < b : std::isnan(right);
  return left == right ? a < b : left > right;
}

int64_t largest(std::span<const float> logits) {
  int64_t best = 0;
  for (int64_t i = 1; i < static_cast<int64_t>(logits.size()); ++i)
    if (isBefore(logits, i, best))
      best = i;
  return best;
}

/// Tokens with the `count` largest logits, in order; all of them, in their own order, where that leaves none out.
std::vector<int64_t> largestTokens(std::span<const float> logits, size_t count) {
  std::vector<int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  if (count >= tokens.size())
    return tokens;
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count), tokens.end(),
                    [&](int64_t a, int64_t b) { return isBefore(logits, a, b); });
  tokens.resize(count);
  return tokens;
}

/// A token and e^((logit - largest) / temperature), in units in which the sum of all weights fits into 64 bits. Sums of
/// whole numbers have no rounding, and so no order.
struct Candidate {
  int64_t token;
  uint64_t weight;
};

std::vector<Candidate> weigh(std::span<const float> logits, const std::vector<int64_t> &tokens, double temperature) {
  double top = logits[static_cast<size_t>(largest(logits))];
  double units = std::ldexp(1.0, 63 - static_cast<int>(std::bit_width(tokens.size())));
  std::vector<Candidate> candidates;
  candidates.reserve(tokens.size());
  for (int64_t token : tokens) {
    double weight = std::exp((logits[static_cast<size_t>(token)] - top) / temperature) * units;
    candidates.push_back({token, std::isnan(weight) ? 0 : static_cast<uint64_t>(weight)});
  }
  return candidates;
}

uint64_t sumOf(std::span<const Candidate> candidates) {
  uint64_t sum = 0;
  for (const Candidate &candidate : candidates)
    sum += candidate.weight;
  return sum;
}

/// The largest candidates, as few as add up to `mass` (from 1 to the sum of all), come to the front, the least of
/// them last. Returns how many. Halves of them are added up, and one is halved again: time is linear in their number.
size_t leadWithSum(std::span<Candidate> candidates, std::span<const float> logits, uint64_t mass) {
  size_t in = 0, end = candidates.size(); // those before `in` are taken, and those from `end` on are not
  while (end - in > 1) {
    std::span<Candidate> open = candidates.subspan(in, end - in);
    size_t half = open.size() / 2;
    std::nth_element(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(half), open.end(),
                     [&](const Candidate &a, const Candidate &b) { return isBefore(logits, a.token, b.token); });
    uint64_t sum = sumOf(open.first(half));
    if (sum >= mass) {
      end = in + half;
    } else {
      mass -= sum;
      in += half;
    }
  }
  return end;
}

/// Drops candidates that are too light to be among the largest that add up to `mass`: those below the mean of the rest.
/// Few of a large vocabulary stay.
void dropLight(std::vector<Candidate> &candidates, uint64_t all, uint64_t mass) {
  uint64_t least = (all - mass) / candidates.size();
  std::erase_if(candidates, [&](const Candidate &candidate) { return candidate.weight < least; });
}

/// The first of the candidates, in the order in which they stand, at which their sum exceeds `point`.
int64_t tokenAt(std::span<const Candidate> candidates, uint64_t point) {
  uint64_t passed = 0;
  for (const Candidate &candidate : candidates)
    if ((passed += candidate.weight) > point)
      return candidate.token;
  return candidates.back().token;
}

} // namespace

int64_t chooseToken(std::span<const float> logits, const Sampling &sampling, uint64_t sequence, uint64_t position) {
  if (sampling.temperature <= 0)
    return largest(logits);
  size_t count = sampling.topK ? sampling.topK : logits.size();
  std::vector<Candidate> candidates = weigh(logits, largestTokens(logits, count), sampling.temperature);
  uint64_t kept = sumOf(candidates);
  if (kept == 0) // infinite logits
    return largest(logits);
  if (sampling.topP < 1) {
    double wanted = std::ceil(sampling.topP * static_cast<double>(kept));
    uint64_t mass = std::clamp(static_cast<uint64_t>(wanted), uint64_t(1), kept);
    dropLight(candidates, kept, mass);
    candidates.resize(leadWithSum(candidates, logits, mass));
    kept = sumOf(candidates);
  }
  double uniform = randomUniform(sampling.seed, sequence, randomStream("sampling"), static_cast<uint32_t>(position));
  uint64_t point = std::min(static_cast<uint64_t>(uniform * static_cast<double>(kept)), kept - 1);
  if (sampling.topP < 1)
    return candidates[leadWithSum(candidates, logits, point + 1) - 1].token;
  return tokenAt(candidates, point);
}

} // namespace par::core
