#pragma once

#include "par/Dialect/Par.h"

#include "llvm/ADT/DenseSet.h"

namespace par {

/// Predicts on a forward step which ops will have a backward: frozen layers need none.
class GradientFlow {
public:
  explicit GradientFlow(StepOp step);

  /// Whether a change of a trained parameter changes the value smoothly.
  bool reaches(mlir::Value value) const { return reached.contains(value); }
  /// Whether backward reads the value, or may.
  bool isSaved(mlir::Value value) const;
  /// Time of the op's backward in forwards: 2 if its operands get gradients (a matmul's are two matmuls), 1 if one of
  /// them is a frozen weight or comes from frozen layers, 0 if no gradient reaches the op.
  int64_t backward(mlir::Operation *op) const;

private:
  llvm::DenseSet<mlir::Value> reached, frozen;
};

/// Floating-point operations of the matmuls, convolutions and attention of a forward step, and with `trains` of their
/// backward: as many again for each operand that a gradient reaches. Masked scores of attention count; recomputation
/// does not.
double modelFlops(StepOp step, bool trains);

} // namespace par
