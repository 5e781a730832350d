// Sampling as transformers does it: temperature, then top-k, then top-p, then a draw by the cumulated probabilities.
#include "Sampling.h"

#include "par/files/Random.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

/// Tokens with the `count` largest logits, in order; all of them in their own order where nothing is left out.
std::vector<int64_t> candidates(std::span<const float> logits, size_t count, bool sorted) {
  std::vector<int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  if (!sorted)
    return tokens;
  auto before = [&](int64_t a, int64_t b) { return isBefore(logits, a, b); };
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count), tokens.end(), before);
  tokens.resize(count);
  return tokens;
}

/// e^((logit - largest) / temperature) of each token, in order.
std::vector<double> weightsOf(std::span<const float> logits, const std::vector<int64_t> &tokens, double temperature) {
  std::vector<double> weights;
  double top = logits[static_cast<size_t>(largest(logits))];
  for (int64_t token : tokens) {
    double weight = std::exp((logits[static_cast<size_t>(token)] - top) / temperature);
    weights.push_back(std::isnan(weight) ? 0 : weight);
  }
  return weights;
}

} // namespace

int64_t chooseToken(std::span<const float> logits, const Sampling &sampling, uint64_t sequence, uint64_t position) {
  if (sampling.temperature <= 0)
    return largest(logits);
  size_t count = sampling.topK ? std::min<size_t>(sampling.topK, logits.size()) : logits.size();
  bool sorted = count < logits.size() || sampling.topP < 1;
  std::vector<int64_t> tokens = candidates(logits, count, sorted);
  std::vector<double> weights = weightsOf(logits, tokens, sampling.temperature);
  double all = std::accumulate(weights.begin(), weights.end(), 0.0), kept = 0;
  if (!(all > 0)) // infinite logits
    return largest(logits);
  size_t among = 0;
  while (among < weights.size() && (among == 0 || kept < sampling.topP * all))
    kept += weights[among++];
  double point =
      randomUniform(sampling.seed, sequence, randomStream("sampling"), static_cast<uint32_t>(position)) * kept;
  double passed = 0;
  for (size_t i = 0; i + 1 < among; ++i)
    if ((passed += weights[i]) > point)
      return tokens[i];
  return tokens[among - 1];
}

} // namespace par::core
