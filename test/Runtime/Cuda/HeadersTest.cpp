// Where NVIDIA's headers are at hand, the runtime's own declarations are held against them. Nothing else
// needs them.
#include "par/cuda/Nccl.h"
#include "par/cuda/Products.h"

#include <cstddef>

namespace own = par::cuda;

#define SAME(OURS, THEIRS) static_assert(static_cast<long long>(OURS) == static_cast<long long>(THEIRS))

#if __has_include(<cuda.h>)
#include <cuda.h>
SAME(own::notReady, CUDA_ERROR_NOT_READY);
SAME(own::streamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME(own::eventWithoutTiming, CU_EVENT_DISABLE_TIMING);
SAME(own::captureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(own::attributeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(own::attributeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(own::functionSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(sizeof(own::Address), sizeof(CUdeviceptr));
#endif

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
using Theirs = cublasLtMatmulHeuristicResult_t;
SAME(sizeof(own::BlasAlgorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(own::BlasHeuristic), sizeof(Theirs));
SAME(offsetof(own::BlasHeuristic, workspace), offsetof(Theirs, workspaceSize));
SAME(offsetof(own::BlasHeuristic, state), offsetof(Theirs, state));
#endif

#if __has_include(<nccl.h>)
#include <nccl.h>
SAME(own::ncclInProgress, ::ncclInProgress);
SAME(own::ncclNoColor, NCCL_SPLIT_NOCOLOR);
SAME(own::NcclConfig::unset, NCCL_CONFIG_UNDEF_INT);
SAME(sizeof(own::NcclId), sizeof(ncclUniqueId));
SAME(offsetof(own::NcclConfig, magic), offsetof(ncclConfig_t, magic));
SAME(offsetof(own::NcclConfig, version), offsetof(ncclConfig_t, version));
SAME(offsetof(own::NcclConfig, blocking), offsetof(ncclConfig_t, blocking));
SAME(offsetof(own::NcclConfig, netName), offsetof(ncclConfig_t, netName));
SAME(offsetof(own::NcclConfig, splitShare), offsetof(ncclConfig_t, splitShare));
SAME(offsetof(own::NcclConfig, trafficClass), offsetof(ncclConfig_t, trafficClass));
#endif
