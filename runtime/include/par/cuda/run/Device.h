// The device `cuda`: queues are streams, signal and wait are events, and a repeated entry is captured as a graph.
#pragma once

#include "par/device/Device.h"

#include <memory>

namespace par::cuda {

/// A rank on one GPU. The environment: PAR_CUDA_GRAPHS=0 captures nothing; PAR_CUDA_BLOCKING=1 waits for each
/// step and names the one that fails; PAR_CUDA_STALL=SECONDS (600) without progress end the job.
std::unique_ptr<core::Device> makeDevice(const core::DeviceOptions &options);

} // namespace par::cuda
