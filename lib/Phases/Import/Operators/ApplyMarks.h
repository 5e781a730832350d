// What the model's training marks make of the result of a node.
#pragma once

#include "../Graph/GraphImporter.h"

namespace par {

/// The rows that a Gather looked up at `indices` along `dim`, which has `size`: with PyTorch's gradient where the file
/// says that the node is an embedding. An error where it can be none.
mlir::FailureOr<mlir::Value> markEmbedding(NodeImporter &importer, mlir::Value rows, mlir::Value indices, int64_t dim,
                                           int64_t size);

} // namespace par
