// The choice of a token from its logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace par::core {

/// How tokens are chosen.
struct Sampling {
  double temperature = 0; ///< 0: the largest logit, the first of several
  uint64_t topK = 0;      ///< only the K largest logits; 0: all
  double topP = 1;        ///< only the largest ones whose probabilities add up to this
  uint64_t seed = 0;
};

/// The token at `position` of `sequence`. The order of all sums follows from the logits, and the random number from
/// seed, sequence and position: equal logits give the same token on each mesh, in each batch. A logit that is NaN is
/// never chosen.
int64_t chooseToken(std::span<const float> logits, const Sampling &sampling, uint64_t sequence, uint64_t position);

} // namespace par::core
