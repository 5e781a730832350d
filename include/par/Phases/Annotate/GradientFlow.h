#pragma once

#include "par/Dialect/Par.h"

#include "llvm/ADT/DenseSet.h"

namespace par {

/// Where gradients will flow in a forward step, before there are any: what frozen layers spare.
class GradientFlow {
public:
  explicit GradientFlow(StepOp step);

  /// Whether a change of a trained parameter changes the value smoothly.
  bool reaches(mlir::Value value) const { return reached.contains(value); }
  /// Whether backward reads the value, or may.
  bool isSaved(mlir::Value value) const;
  /// Time of the op's backward, in its forwards: 2 where its operands get gradients (those of a product are two
  /// products), 1 where a frozen weight or what frozen layers give is among them, 0 where no gradient comes by.
  int64_t backward(mlir::Operation *op) const;

private:
  llvm::DenseSet<mlir::Value> reached, frozen;
};

} // namespace par
