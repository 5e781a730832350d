#pragma once

#include "par/Plan/Model/Plan.h"
#include "par/Simulator/Simulator.h"

namespace par {

/// `1f1b, m = 8: closed form 11.1 %`: the bubble that is expected of the plan's schedule, for stages whose forwards and
/// backwards take what those of `simulation` take on average. Where the schedule has no closed form, that of its table.
/// Empty with one stage.
std::string describeExpectedBubble(const Plan &plan, const format::Bundle &bundle, const Simulation &simulation);

} // namespace par
