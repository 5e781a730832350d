// A compilation whose bundle is only measured and played.
#pragma once

#include "par/Compiler/Compiler.h"

namespace par {

/// `Sample`: costs are taken from it, and it never runs. No program is verified beyond the phases' gates, and arenas
/// are packed greedily, so that they may be larger by a few percent.
enum class TrialEffort { Full, Sample };

/// As `compile`, without machine code and without the identity of the model's file: memory, communication and the
/// predicted step are those of the bundle that `compile` makes. `mesh_order: auto` is the mesh's, `collectives.bucket:
/// auto` the default.
///
/// `earlier`: a trial of the same model, whose imported module it takes if the plans' sizes are equal. Both share a
/// context, so one thread at a time may go on from it.
Compiled compileTrial(PlannedModel planned, CompileObserver &observer, const Compiled *earlier = nullptr,
                      TrialEffort effort = TrialEffort::Full);

/// The predicted step of a trial whose ranks are numbered by another order of the mesh's axes, outermost first.
/// Programs are the trial's; what its phases choose by cost may be another when the plan is compiled in that order.
/// Nothing if it cannot be played.
std::optional<int64_t> playInOrder(Compiled &trial, const PlanAxes &order);

} // namespace par
