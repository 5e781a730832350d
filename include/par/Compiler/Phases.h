// The phases of docs/design.md §2 with the options that a plan gives them.
#pragma once

#include "par/Phases/Annotate/Passes.h"
#include "par/Phases/Recompute/Recompute.h"

#include <functional>

namespace par {

/// One phase: its passes and its gate.
struct Phase {
  llvm::StringRef name;
  std::function<void(mlir::OpPassManager &)> build;
};

/// The phases after Import for a plan, in order. `plan` outlives them. `memory`: bytes that a rank has, if they are
/// bounded. `recomputes` becomes the outcome of Recompute.
std::vector<Phase> buildPhases(const ModelPlan &plan, std::optional<uint64_t> memory, RecomputeOutcomes &recomputes,
                               bool packsGreedily = false);

/// Names of the phases in their order, Import first.
llvm::ArrayRef<llvm::StringRef> phaseNames();

} // namespace par
