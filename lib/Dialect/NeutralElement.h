// The neutral element of a reduction, in the interpreter's element types: f64 for any float, i64 for any integer.
#pragma once

#include "par/Dialect/Lower.h"

#include "mlir/IR/Builders.h"

namespace par {

/// As kernels have it in this element type: the neutral element of max is -2^31 for i32.
template <typename T>
T neutralElement(ReduceKind kind, mlir::Type element) {
  mlir::OpBuilder builder(element.getContext());
  if constexpr (std::is_floating_point_v<T>)
    return llvm::cast<mlir::FloatAttr>(getNeutral(builder, kind, builder.getF64Type())).getValueAsDouble();
  else {
    llvm::APInt value = llvm::cast<mlir::IntegerAttr>(getNeutral(builder, kind, element)).getValue();
    return element.isInteger(1) ? value.getZExtValue() : value.getSExtValue();
  }
}

} // namespace par
