#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// Mean of the losses of all labels that are not `ignore`: their sum divided by their count, both over the whole batch,
/// so that a cut into microbatches changes nothing. The class dim is the last one of `logits`. Where the operands are
/// merges of the same leading dims, the loss is taken of the unmerged ones. `smoothing` is the share of a label that
/// all classes have alike.
mlir::Value buildCrossEntropyMean(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value logits, mlir::Value labels,
                                  int64_t ignore, double smoothing = 0);
/// Losses of single tokens, or their sum over everything.
mlir::Value buildCrossEntropy(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value logits, mlir::Value labels,
                              int64_t ignore, double smoothing = 0);
mlir::Value buildTotal(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);
/// Sum divided by the element count.
mlir::Value buildMean(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

} // namespace par
