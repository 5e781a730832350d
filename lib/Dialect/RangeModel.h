#pragma once

#include "par/Dialect/Attach.h"

#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace par {

/// Base of the dialect's models of InferIntRangeInterface. A model infers from known ranges; unknown ones go through
/// MLIR's default, which external models do not inherit.
template <typename Model, typename Op>
struct RangeModel : mlir::InferIntRangeInterface::ExternalModel<Model, Op> {
  void inferResultRangesFromOptional(mlir::Operation *op, llvm::ArrayRef<mlir::IntegerValueRange> operands,
                                     mlir::SetIntLatticeFn set) const {
    mlir::intrange::detail::defaultInferResultRanges(llvm::cast<mlir::InferIntRangeInterface>(op), operands, set);
  }
};

} // namespace par
