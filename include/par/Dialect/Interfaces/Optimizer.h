#pragma once

#include "par/Dialect/Par.h"

#include "par/Dialect/Interfaces/Optimizer.h.inc"

namespace par {

/// Facts about an optimizer that need no op of it.
struct Optimizer {
  mlir::RegisteredOperationName op;
  const OptimizerOpInterface::Concept *facts;

  llvm::ArrayRef<llvm::StringRef> getStates() const { return facts->getStates(); }
  bool countsSteps() const { return facts->countsSteps(); }
  bool updatesMatrices() const { return facts->updatesMatrices(); }
};

/// The optimizer that a plan calls `kind`; nothing if there is none. The dialect must be loaded.
std::optional<Optimizer> findOptimizer(mlir::MLIRContext *context, llvm::StringRef kind);

/// The words for all optimizers, in order.
llvm::SmallVector<llvm::StringRef> optimizerKinds(mlir::MLIRContext *context);

} // namespace par
