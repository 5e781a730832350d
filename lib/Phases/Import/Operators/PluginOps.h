// Nodes of another domain as ops of a plugin's dialect.
#pragma once

#include "../Graph/GraphImporter.h"

namespace par {

/// The op DOMAIN.OPTYPE of a dialect that a plugin registers, if it can be sharded; null else, also for Par's own.
std::optional<mlir::RegisteredOperationName> findPluginOp(const onnx::Node &node, mlir::MLIRContext *context);

/// Imports the node as that op: its operands and attributes are the node's, its result types are inferred.
mlir::LogicalResult importPluginOp(NodeImporter &importer, mlir::RegisteredOperationName name);

} // namespace par
