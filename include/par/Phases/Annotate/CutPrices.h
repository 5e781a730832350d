// Times of the parts of a step, for the cut into stages: Annotate asks for them, the compiler knows all phases.
#pragma once

#include "par/Dialect/Par.h"
#include "par/Solver/Cut/StageCut.h"

#include "llvm/ADT/StringMap.h"

#include <functional>

namespace par {

/// Groups of a step's ops, by the names that later phases keep.
struct CutGroups {
  unsigned count = 0;
  llvm::StringMap<unsigned> ofNode;     ///< by Provenance::path
  llvm::StringMap<unsigned> ofVariable; ///< the first group that reads it
};

/// The names by which later phases know groups of a step's ops.
CutGroups nameGroups(llvm::ArrayRef<llvm::SmallVector<mlir::Operation *>> groups);

/// Time on one rank of the stage.
struct CutPrices {
  std::vector<CutWork> groups;
  std::vector<CutBond> bonds; ///< of groups that are in one kernel
};

/// Prices a module of one stage, with Annotate's work done: it is consumed. Fails, with a warning that says why, if
/// its step cannot be compiled without a pipeline.
using CutPricer = std::function<mlir::FailureOr<CutPrices>(mlir::ModuleOp module, const CutGroups &groups)>;

} // namespace par
