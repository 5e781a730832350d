// The stage_cut problem of a forward step: groups (CutGroups.cpp), prices (CutPrices.cpp), problem (CutProblem.cpp).
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

/// Prices of the groups by the kernels that they become on one stage, that with fewest ranks: on one rank and for one
/// microbatch, or of one rank for all where stages have meshes of their own. Fails where the pricer does.
mlir::FailureOr<CutPrices> priceKernels(mlir::ModuleOp module, llvm::ArrayRef<mlir::Operation *> ops,
                                        llvm::ArrayRef<OpGroup> groups, const Plan &plan, const CutPricer &pricer);

/// The same op by op: every op moves its bytes, and backward takes as many forwards as there are operands with a
/// gradient.
CutPrices priceOps(StepOp step, llvm::ArrayRef<OpGroup> groups, const Plan &plan, const CostTable &costs);

/// Nodes are the groups of the step's ops, with their prices, their weights (including gradients and optimizer states)
/// and their saved values. Values are those that cross groups, including weights of several groups. Figures are of one
/// rank and one microbatch. `stages` are the ranks of each stage, if known: transfers between hosts use their link, and
/// those between stages on the same ranks are free.
llvm::Expected<StageCutProblem> makeCutProblem(StepOp step, llvm::ArrayRef<OpGroup> groups, const Plan &plan,
                                               const CostTable &costs, const CutPrices &prices,
                                               llvm::ArrayRef<llvm::ArrayRef<int64_t>> stages);

} // namespace par
