// The step and the memory of a candidate, from the costs of one layer and of the rest.
#pragma once

#include "par/Search/Machine.h"
#include "par/Search/Profile.h"

namespace par {

/// The expected figures of a candidate. Exact are the times of a microbatch on one stage; approximate the overlap of
/// gradients' reduction (all of it but a layer's share runs beside one backward), the transfers between stages (left
/// out), stages that are not cut between layers, and recomputation (by the front of what ops take one by one).
struct Estimate {
  int64_t stepNs = 0;
  int64_t peak = 0;        ///< bytes of the fullest rank, after recomputation
  int64_t least = 0;       ///< bytes of it where all but layers' inputs is recomputed
  bool recomputes = false; ///< values, to fit
  bool fits = false;
};
/// `limit`: bytes of a rank; nothing: unlimited.
Estimate estimate(const Candidate &candidate, const ModelCost &cost, const Space &space, const Machine &machine,
                  std::optional<uint64_t> limit);

} // namespace par
