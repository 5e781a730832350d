#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// A launch of a kernel that gives its operand's first elements, or all, in their order under another shape: the bytes
/// are there already.
bool isView(mlir::Operation *op, const mlir::SymbolTable &kernels);

/// A launch of a kernel that only adds to the end of its operand.
bool isFill(mlir::Operation *op, const mlir::SymbolTable &kernels);

/// Gives buffers of state more rows if blocks pad the state to these, or store the first rows of a value with these:
/// neither then needs a copy. (A table of 5 rows that two ranks update in shares of 3 is gathered in 6.) Between ops
/// the bytes after the state's own rows are unused. Returns these buffers.
llvm::DenseSet<mlir::Operation *> growBuffersOfState(mlir::ModuleOp module, const mlir::SymbolTable &kernels);

} // namespace par
