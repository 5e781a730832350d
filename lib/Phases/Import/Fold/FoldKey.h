#pragma once

#include "par/Phases/Import/StaticTensor.h"

namespace par {

/// Equal for nodes that compute the same value from known inputs: of inputs of a few elements these count, of others
/// where they lie.
std::string foldKey(const onnx::Node &node, int64_t opset, llvm::ArrayRef<const StaticTensor *> inputs);

} // namespace par
