// The step and the memory of a candidate, from the costs of one layer and of the rest.
#pragma once

#include "par/Base/Hardware.h"
#include "par/Search/Profile.h"

namespace par {

/// The expected figures of a candidate. Exact are the times of a microbatch on one stage; approximate the overlap of
/// gradients' reduction (all of it but a layer's share runs beside one backward), the transfers between stages (left
/// out), stages that are not cut between layers, and recomputation (each saved byte costs alike).
struct Estimate {
  int64_t stepNs = 0;
  int64_t peak = 0;        ///< bytes of the fullest rank, after recomputation
  bool recomputes = false; ///< values, to fit
  bool fits = false;
};
/// `limit`: bytes of a rank; nothing: unlimited.
Estimate estimate(const Candidate &candidate, const ModelCost &cost, const Space &space, const Hardware &hardware,
                  std::optional<uint64_t> limit);

/// A lower bound of the step of any plan with the candidate's degrees and microbatch: the local work of a microbatch,
/// dealt to the stages as well as can be, without communication. A stage waits for the first microbatch to come through
/// the ones before it, unless a rank has several stages or computes weight gradients apart.
int64_t boundNs(const Candidate &candidate, const ModelCost &cost);

} // namespace par
