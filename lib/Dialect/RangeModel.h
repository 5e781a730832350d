#pragma once

#include "par/Dialect/Attach.h"

#include "mlir/Interfaces/InferIntRangeInterface.h"

namespace par {

/// A model of InferIntRangeInterface says what integers of known ranges give; of unknown ones, MLIR's own default,
/// which asks ops that have the interface by themselves alone.
template <typename Model, typename Op>
struct RangeModel : mlir::InferIntRangeInterface::ExternalModel<Model, Op> {
  void inferResultRangesFromOptional(mlir::Operation *op, llvm::ArrayRef<mlir::IntegerValueRange> operands,
                                     mlir::SetIntLatticeFn set) const {
    mlir::intrange::detail::defaultInferResultRanges(llvm::cast<mlir::InferIntRangeInterface>(op), operands, set);
  }
};

} // namespace par
