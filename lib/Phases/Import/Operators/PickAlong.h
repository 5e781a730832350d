// Elements along one dim, chosen when importing.
#pragma once

#include "../Graph/GraphImporter.h"

namespace par {

/// The elements `indices` of a value along `dim`: nothing, a slice, a repetition, or else a gather.
llvm::FailureOr<mlir::Value> pickAlong(NodeImporter &importer, mlir::Value value, int64_t dim,
                                       llvm::ArrayRef<int64_t> indices);

} // namespace par
