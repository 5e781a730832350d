// Prices of a step's parts from the kernels that its ops become.
#pragma once

#include "par/Phases/Annotate/CutPrices.h"
#include "par/Phases/Annotate/Passes.h"

namespace par {

/// The pricer of a plan: it runs the phases from Train to Schedule on the step as one stage, groups its ops into
/// kernels, and gives each kernel's and collective's time to the groups of its ops. `model` outlives it.
CutPricer makeCutPricer(const ModelPlan &model, std::optional<uint64_t> memory);

} // namespace par
