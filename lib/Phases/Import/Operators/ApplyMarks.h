// Applies the model's training marks to the result of a node.
#pragma once

#include "../Graph/GraphImporter.h"

namespace par {

/// The rows that a Gather looked up at `indices` along `dim`, of `size`, with PyTorch's gradient if the file marks the
/// node as an embedding. An error if it cannot be one.
mlir::FailureOr<mlir::Value> markEmbedding(NodeImporter &importer, mlir::Value rows, mlir::Value indices, int64_t dim,
                                           int64_t size);

} // namespace par
