#pragma once

#include "par/Phases/Import/StaticTensor.h"

namespace par {

/// Equal for nodes that compute the same value from known inputs: small inputs are compared by their elements, others
/// by their place in memory.
std::string foldKey(const onnx::Node &node, int64_t opset, llvm::ArrayRef<const StaticTensor *> inputs);

} // namespace par
