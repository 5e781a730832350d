#pragma once

#include "StagePairs.h"

#include "par/Costs/CostTable.h"

namespace par {

/// The residuals of stages before a rewrite, to tell which of them backward recomputes after it.
class ResidualList {
public:
  ResidualList(llvm::ArrayRef<StagePair> stages, const CostTable &costs);

  /// The residuals that are none any more, by module and type, layers together; the most bytes first.
  std::vector<RecomputedValues> findRecomputed(llvm::ArrayRef<StagePair> stages) const;

private:
  struct Residual {
    mlir::Value value; ///< only to compare with: a rewrite may erase its op
    RecomputedValues described;
  };
  std::vector<Residual> residuals;
};

} // namespace par
