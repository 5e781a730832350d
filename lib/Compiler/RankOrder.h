#pragma once

#include "par/Compiler/Compiler.h"

namespace par {

/// The order of axes for `mesh_order: auto`, in which the step of `compiled` is predicted to take least, found by
/// playing its programs with ranks numbered by each order that fits the plan. Orders that put all groups on the same
/// units are one. On a tie the order that the bundle has, and then the one that comes first. Nothing if the step cannot
/// be played.
std::optional<RankOrderChoice> chooseRankOrder(Compiled &compiled);

/// The machine's levels as a plan sees them.
std::vector<PlanLevel> planLevels(const Hardware &hardware);

/// The first order that fits the plan; planning has checked that there is one.
PlanMeshOrder firstRankOrder(const PlannedModel &planned);

/// The order as a plan has it: as written if it is the mesh's.
PlanMeshOrder rankOrder(const Plan &plan, PlanAxes axes);

} // namespace par
