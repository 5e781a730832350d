#pragma once

#include "par/Dialect/Par.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

namespace par {

/// Arguments and coordinates on which a result of a kernel's body depends.
struct ResultDependence {
  llvm::BitVector arguments;
  llvm::SmallSetVector<mlir::ArrayAttr, 2> coordinates; ///< axes of the coordinates that it takes
};

/// One for each result of the kernel, by its body.
llvm::SmallVector<ResultDependence> dependencesOf(KernelOp kernel);

} // namespace par
