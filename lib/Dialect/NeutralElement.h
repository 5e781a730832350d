// What changes nothing when combined, as the interpreter holds elements: f64 of any float, i64 of any integer.
#pragma once

#include "par/Dialect/Lower.h"

#include "mlir/IR/Builders.h"

namespace par {

/// Of the element type, as kernels have it: the least of an i32 is -2^31.
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
