// The stage_cut problem of a forward step.
#pragma once

#include "par/Costs/CostTable.h"
#include "par/Phases/Annotate/Passes.h"
#include "par/Solver/Cut/StageCut.h"

namespace par {

/// Ops that stay together: neighbours of one module, or of one node.
using OpGroup = llvm::SmallVector<mlir::Operation *>;

/// Groups of consecutive ops of one module, in order: intervals of a topological order, so that all edges of their
/// graph go forward. If there are fewer than `fewest` groups (a file without modules), one group a node. `ops` are the
/// ops to place on stages.
std::vector<OpGroup> groupForCuts(llvm::ArrayRef<mlir::Operation *> ops, size_t fewest);

/// The names by which later phases know the groups.
CutGroups nameGroups(llvm::ArrayRef<OpGroup> groups);

/// Prices of the groups op by op, on one rank and for one microbatch; of one rank for all where stages have meshes of
/// their own.
CutPrices priceOps(StepOp step, llvm::ArrayRef<OpGroup> groups, const Plan &plan, const CostTable &costs);

/// Nodes are the groups of the step's ops, with their prices, their weights (including gradients and optimizer states)
/// and their saved values. Values are those that cross groups, including weights of several groups. Figures are of one
/// rank and one microbatch. `stages` are the ranks of each stage, if known: transfers between hosts use their link, and
/// those between stages on the same ranks are free.
llvm::Expected<StageCutProblem> makeCutProblem(StepOp step, llvm::ArrayRef<OpGroup> groups, const Plan &plan,
                                               const CostTable &costs, const CutPrices &prices,
                                               llvm::ArrayRef<llvm::ArrayRef<int64_t>> stages);

} // namespace par
