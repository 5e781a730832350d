#pragma once

#include "FragmentPair.h"

#include "par/Phases/Recompute/Recompute.h"

namespace par {

/// A pair and the microbatches that its stage has in flight.
struct StagePair {
  FragmentPair pair;
  int64_t inFlight = 1;
};

/// Pairs by groups of ranks, each in the order of stages; groups without a pair are left out.
std::vector<std::vector<StagePair>> findPairsByRanks(mlir::ModuleOp module, llvm::StringRef schedule);

/// "0+2", of the role s0+2.
std::string nameStages(llvm::ArrayRef<StagePair> stages);

/// Recomputes all values that are not saved; saves nothing that is cheap (FragmentPair::findCheap).
void recomputeAllBut(StagePair &stage, const ValueSet &saved, bool keepOperands);
/// Saves the residuals that are not cheap.
void recomputeCheap(StagePair &stage, bool keepOperands);

/// Bytes of all microbatches in flight if recomputeCheap() ran, without a rewrite.
int64_t countResidualBytes(const StagePair &stage, bool keepOperands);

} // namespace par
