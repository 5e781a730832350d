// The stage_cut problem of a forward step.
#pragma once

#include "par/Phases/Annotate/Passes.h"
#include "par/Solver/Cut/StageCut.h"

namespace par {

/// Ops that stay together: neighbours of one module, or of one node.
using OpGroup = llvm::SmallVector<mlir::Operation *>;

/// Groups of consecutive ops of one module, in order: intervals of a topological order, so that their graph is one of
/// forward edges only; of one node where that makes fewer than `fewest` (a file without modules). `ops` are the ops
/// that are to be on a stage.
std::vector<OpGroup> groupForCuts(llvm::ArrayRef<mlir::Operation *> ops, size_t fewest);

/// Nodes: the groups of the step's ops with their time, what their weights with gradients and optimizer states take,
/// and what they save; values: what crosses groups, weights of several groups among them. Figures are of one rank and
/// one microbatch. `stages` are the ranks of each, if they are known: what goes between hosts takes their link, and
/// between stages on the same ranks nothing.
llvm::Expected<StageCutProblem> makeCutProblem(StepOp step, llvm::ArrayRef<OpGroup> groups, const Plan &plan,
                                               llvm::ArrayRef<llvm::ArrayRef<int64_t>> stages);

} // namespace par
