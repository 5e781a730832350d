#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Mean of the losses of all labels that are not `ignore`: their sum divided by their count, both over the whole batch,
/// so that microbatches do not change it. The class dim is the last one of `logits`. If the operands merge the same
/// leading dims, the loss is taken of the unmerged ones. `smoothing` is the share of a label that is spread over all
/// classes.
mlir::Value buildCrossEntropyMean(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value logits, mlir::Value labels,
                                  int64_t ignore, double smoothing = 0);
/// Losses of single tokens, or their sum over everything.
mlir::Value buildCrossEntropy(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value logits, mlir::Value labels,
                              int64_t ignore, double smoothing = 0);
mlir::Value buildTotal(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);
/// Sum divided by the element count.
mlir::Value buildMean(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

} // namespace par
