// The attention builtins by cuDNN.
#pragma once

#include "par/comm/Control.h"
#include "par/core/Device.h"
#include "par/cuda/DnnGraph.h"
#include "par/cuda/Kernels.h"

namespace par::cuda {

/// Bytes of workspace that an attention may want; each queue has one of the largest of an entry.
inline constexpr uint64_t attentionWorkspace = uint64_t(1) << 30;

/// An attention builtin with these immediates and the engine that cuDNN proposes here. Operands are aligned
/// to so many bytes; messages name kernel and ONNX node. Throws core::Failure where cuDNN cannot compute it.
std::unique_ptr<LibraryKernel> makeAttention(const Dnn &dnn, std::string_view builtin,
                                             const std::vector<uint64_t> &immediates, uint32_t alignment,
                                             const std::string &kernel, const std::string &node);

bool anyAttention(const format::Bundle &bundle);
/// Collective: gives `kernels` the attentions of this rank's program, planned. Replicas must not diverge, so
/// rank 0 chooses the engines for all programs and tells the others. Throws core::Failure, with the ONNX
/// node, where cuDNN cannot compute one.
void agreeOnAttentions(const Dnn &dnn, const core::DeviceOptions &options, comm::Control &control,
                       Kernels &kernels);

} // namespace par::cuda
