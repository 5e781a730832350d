// Windows as ONNX's attributes state them.
#pragma once

#include "../Graph/GraphImporter.h"
#include "par/Dialect/Windows.h"

namespace par {

/// `strides`, `dilations` and one pad before and after each dim of windows of `size`; an error if they do not fit.
llvm::FailureOr<Windows> readWindows(NodeImporter &importer, llvm::ArrayRef<int64_t> size);

/// As readWindows, with `auto_pad` and `ceil_mode` resolved for an operand of `lengths`. At least one window fits.
llvm::FailureOr<Windows> readWindows(NodeImporter &importer, llvm::ArrayRef<int64_t> size,
                                     llvm::ArrayRef<int64_t> lengths);

/// The node's first input, of floats [N, C, s...] with at least one spatial dim.
llvm::FailureOr<mlir::Value> spatialOperand(NodeImporter &importer);

} // namespace par
