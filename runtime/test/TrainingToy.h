// A bundle that trains, for tests of par-run: loss = sum of w^2, and sgd with the gradient 1.
#pragma once

#include "ToyBundles.h"

namespace par::toy {

/// Parameter w f32[8, 8] sharded by rows over `ranks` ranks of axis dp; a counter `step`; inputs input_ids and labels
/// i64[2 ranks, 16] in [0, 128), rows sharded; hyperparameter lr, 0.1. Entries train (w -= lr, step += 1) and eval,
/// both fetching loss (before the update) and grad_norm (1). Text feeds input_ids and labels, labels one later.
format::Bundle training(uint32_t ranks = 1);

} // namespace par::toy
