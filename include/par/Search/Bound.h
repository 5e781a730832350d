// A step that no plan is below, from the costs of one layer and of the rest.
#pragma once

#include "par/Search/Machine.h"
#include "par/Search/Profile.h"

namespace par {

/// A lower bound of the step of any plan with the candidate's keys, however its layers are dealt to the stages, if the
/// profile's times hold in it. The largest of three:
///
///     waiting   the first microbatch comes through the stages before, after the first one's gather of rounded masters;
///               the last one leaves through them, before its update or what the reduction exceeds the last backward by
///     serial    each rank's gather of rounded masters, its microbatches, and its update or what the reduction exceeds
///               the last backward by. With zero 3 a microbatch takes the longer of its forward and a gather of all
///               parameters, and of its backward and a gather of the layers' matrices: each block begins its own
///               gathers and ends after them
///     exchange  all reductions of replicas, those of each microbatch after the first forward, or all their gathers
///
/// If no collective runs beside compute (`collectives.overlap: false`), all of a rank's follow its work.
/// Left out are transfers between stages, and that communication beside kernels slows them. Nothing: parameters,
/// gradients and states are more than the limit.
std::optional<int64_t> boundNs(const Candidate &candidate, const ModelCost &cost, const Space &space,
                               const Machine &machine, std::optional<uint64_t> limit);

} // namespace par
