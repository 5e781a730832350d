#pragma once

#include "StagePairs.h"

#include "par/Costs/CostTable.h"

namespace par {

/// The outcome of a rewrite of stages on the same ranks: bytes and times before and after it. `rewrite` may fill in
/// what it knows of its choice.
StageRecompute summarizeRewrite(std::vector<StagePair> &stages, bool keepOperands, const CostTable &costs,
                                llvm::function_ref<void(StageRecompute &)> rewrite);

} // namespace par
