#pragma once

#include "../Graph/GraphImporter.h"

namespace par {

/// Mean of the losses of all labels that are not `ignore`: their sum divided by their count, both over the whole batch,
/// so that microbatches do not change it. The class dim is the last one of `logits`. If the operands merge the same
/// leading dims, the loss is taken of the unmerged ones. `smoothing` is the share of a label that is spread over all
/// classes.
mlir::Value buildCrossEntropyMean(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value logits, mlir::Value labels,
                                  int64_t ignore, double smoothing = 0);
/// The same with a weight for each class, as PyTorch has it: the sum of weighted losses divided by the sum of the
/// labels' weights. Evenly spread shares of `smoothing` have the weight of their class.
mlir::Value buildWeightedCrossEntropyMean(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value logits,
                                          mlir::Value labels, int64_t ignore, double smoothing,
                                          llvm::ArrayRef<double> weights);
/// Labels are shares of all classes, in the last dim: the sum of shares times weights times -log p, divided by the
/// number of labels. `weights` may be empty.
mlir::Value buildSoftCrossEntropyMean(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value logits,
                                      mlir::Value labels, double smoothing, llvm::ArrayRef<double> weights);
/// Losses of single tokens, or their sum over everything.
mlir::Value buildCrossEntropy(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value logits, mlir::Value labels,
                              int64_t ignore, double smoothing = 0);
mlir::Value buildTotal(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);
/// Sum divided by the element count.
mlir::Value buildMean(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

/// Adds the graph's other scalars to the results, of which the loss is the first: metrics, as floats. Values that the
/// next step takes (`carried`, buffers) are none.
void addMetrics(mlir::OpBuilder &builder, const onnx::Model &model, const llvm::StringMap<GraphValue> &values,
                llvm::ArrayRef<CarriedPair> carried, llvm::SmallVectorImpl<mlir::Value> &results,
                llvm::SmallVectorImpl<std::string> &names);

} // namespace par
