#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace par::codegen {

/// The last op of a reduction's body if it is associative: it combines two partial results. `identity` is its initial
/// value.
struct Combiner {
  mlir::Operation *op;
  mlir::TypedAttr identity;

  mlir::Value combine(mlir::OpBuilder &builder, mlir::Value x, mlir::Value y) const;
};

/// None where the body joins its accumulator with an element in another way, so that one thread must do all
/// in order.
std::optional<Combiner> findCombiner(mlir::linalg::GenericOp op);

} // namespace par::codegen
