// The builtins of a program that cuDNN computes, ready to run with the engines that ranks agreed on.
#pragma once

#include "ShareTuning.h"
#include "par/cuda/dnn/Dnn.h"
#include "par/cuda/driver/Kernels.h"

namespace par::cuda {

bool anyGraph(const format::Bundle &bundle);
/// Collective: gives `kernels` those of this rank's program, planned. Replicas must not diverge, so rank 0 chooses
/// the engines for all programs, by its file, by timing or by the heuristic, and tells the others. Throws
/// core::Failure, with the ONNX node, where cuDNN cannot compute one.
void shareGraphTuning(const SharedTuning &of, const Dnn &dnn, Kernels &kernels, std::string &remark);

} // namespace par::cuda
