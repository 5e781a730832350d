#pragma once

#include "par/Onnx/Model.h"

namespace par::onnx {

/// Sets module path and source line of a node from what torch.onnx leaves in its metadata (`namespace`: `NAME: CLASS`
/// joined by `/`, the last one being the operator; `pkg.torch.onnx.stack_trace`), else from names like
/// `/layer1/layer1.0/conv1/Conv` of the legacy exporter.
void readProvenance(const Metadata &metadata, Node &node);

/// Reads lines like `p_fc1_weight: PARAMETER target='fc1.weight'`.
std::vector<SignatureEntry> readSignature(std::string_view text);

} // namespace par::onnx
