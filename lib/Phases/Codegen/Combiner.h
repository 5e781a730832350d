#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace par::codegen {

/// The last op of a reduction's body where it is associative: what joins two partial results, and what they
/// begin with.
struct Combiner {
  mlir::Operation *op;
  mlir::TypedAttr identity;

  mlir::Value combine(mlir::OpBuilder &builder, mlir::Value x, mlir::Value y) const;
};

/// None where the body joins its accumulator with an element in another way, so that one thread must do all
/// in order.
std::optional<Combiner> findCombiner(mlir::linalg::GenericOp op);

} // namespace par::codegen
