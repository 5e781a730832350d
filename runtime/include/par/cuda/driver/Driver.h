// The CUDA driver API as far as the runtime uses it: own declarations of its types, one table of entry points
// that is filled by dlopen. No CUDA header is needed, and the runtime library (cudart) is not used.
#pragma once

#include "par/cuda/driver/Library.h"

#include <cstddef>
#include <cstdint>

namespace par::cuda {

using Result = int;
using Address = uint64_t; ///< CUdeviceptr; equal to the pointer's value (unified addressing)
using Context = struct ContextObject *;
using Stream = struct StreamObject *;
using Event = struct EventObject *;
using Module = struct ModuleObject *;
using Function = struct FunctionObject *;
using Graph = struct GraphObject *;
using GraphExec = struct GraphExecObject *;

inline constexpr Result success = 0, notReady = 600;
/// CU_STREAM_NON_BLOCKING, CU_EVENT_DISABLE_TIMING, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL (ranks may be
/// threads).
inline constexpr unsigned streamNonBlocking = 1, eventWithoutTiming = 2, captureThreadLocal = 1;
/// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
inline constexpr int attributeMajor = 75, attributeMinor = 76, functionSharedBytes = 8;
/// Dynamic shared memory that a kernel gets without asking.
inline constexpr unsigned defaultShared = 48 << 10;
/// CUDA 12.4: the minimum version of a driver. The calls here need 12.0, PTX 8.4 of generated kernels needs the rest.
inline constexpr int minDriver = 12040;

/// name in the table, symbol in the library, parameters.
#define PAR_CUDA_ENTRIES(M)                                                                                            \
  M(init, "cuInit", (unsigned flags))                                                                                  \
  M(driverVersion, "cuDriverGetVersion", (int *version))                                                               \
  M(errorName, "cuGetErrorName", (Result, const char **text))                                                          \
  M(errorText, "cuGetErrorString", (Result, const char **text))                                                        \
  M(deviceCount, "cuDeviceGetCount", (int *count))                                                                     \
  M(deviceUuid, "cuDeviceGetUuid_v2", (char *bytes, int device))                                                       \
  M(deviceGet, "cuDeviceGet", (int *device, int ordinal))                                                              \
  M(deviceName, "cuDeviceGetName", (char *name, int bytes, int device))                                                \
  M(deviceAttribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                                  \
  M(contextRetain, "cuDevicePrimaryCtxRetain", (Context *, int device))                                                \
  M(contextRelease, "cuDevicePrimaryCtxRelease_v2", (int device))                                                      \
  M(contextSet, "cuCtxSetCurrent", (Context))                                                                          \
  M(streamPriorities, "cuCtxGetStreamPriorityRange", (int *least, int *greatest))                                      \
  M(memoryInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))                                                      \
  M(allocate, "cuMemAlloc_v2", (Address *, size_t bytes))                                                              \
  M(release, "cuMemFree_v2", (Address))                                                                                \
  M(allocateHost, "cuMemHostAlloc", (void **, size_t bytes, unsigned flags))                                           \
  M(releaseHost, "cuMemFreeHost", (void *))                                                                            \
  M(copyToDevice, "cuMemcpyHtoDAsync_v2", (Address to, const void *from, size_t bytes, Stream))                        \
  M(copyToHost, "cuMemcpyDtoHAsync_v2", (void *to, Address from, size_t bytes, Stream))                                \
  M(copy, "cuMemcpyAsync", (Address to, Address from, size_t bytes, Stream))                                           \
  M(set8, "cuMemsetD8Async", (Address, unsigned char, size_t count, Stream))                                           \
  M(set16, "cuMemsetD16Async", (Address, unsigned short, size_t count, Stream))                                        \
  M(set32, "cuMemsetD32Async", (Address, unsigned, size_t count, Stream))                                              \
  M(set32Strided, "cuMemsetD2D32Async", (Address, size_t pitch, unsigned value, size_t width, size_t height, Stream))  \
  M(streamCreate, "cuStreamCreateWithPriority", (Stream *, unsigned flags, int priority))                              \
  M(streamDestroy, "cuStreamDestroy_v2", (Stream))                                                                     \
  M(streamSynchronize, "cuStreamSynchronize", (Stream))                                                                \
  M(streamWait, "cuStreamWaitEvent", (Stream, Event, unsigned flags))                                                  \
  M(eventCreate, "cuEventCreate", (Event *, unsigned flags))                                                           \
  M(eventRecord, "cuEventRecord", (Event, Stream))                                                                     \
  M(eventQuery, "cuEventQuery", (Event))                                                                               \
  M(eventElapsed, "cuEventElapsedTime", (float *milliseconds, Event from, Event to))                                   \
  M(eventDestroy, "cuEventDestroy_v2", (Event))                                                                        \
  M(moduleLoad, "cuModuleLoadDataEx", (Module *, const void *image, unsigned options, int *names, void **values))      \
  M(moduleUnload, "cuModuleUnload", (Module))                                                                          \
  M(moduleFunction, "cuModuleGetFunction", (Function *, Module, const char *name))                                     \
  M(functionSet, "cuFuncSetAttribute", (Function, int attribute, int value))                                           \
  M(launch, "cuLaunchKernel",                                                                                          \
    (Function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY, unsigned blockZ,      \
     unsigned shared, Stream, void **parameters, void **extra))                                                        \
  M(captureBegin, "cuStreamBeginCapture_v2", (Stream, unsigned mode))                                                  \
  M(captureEnd, "cuStreamEndCapture", (Stream, Graph *))                                                               \
  M(graphInstantiate, "cuGraphInstantiateWithFlags", (GraphExec *, Graph, unsigned long long flags))                   \
  M(graphLaunch, "cuGraphLaunch", (GraphExec, Stream))                                                                 \
  M(graphDestroy, "cuGraphDestroy", (Graph))                                                                           \
  M(graphExecDestroy, "cuGraphExecDestroy", (GraphExec))

/// The driver, opened, of a version that is new enough, and initialised. One for each rank; opening it again
/// is cheap.
class Driver {
public:
  /// Throws core::Failure where there is no driver, an old one, or one that finds no device.
  Driver();

#define PAR_CUDA_MEMBER(NAME, SYMBOL, PARAMETERS) Result(*NAME) PARAMETERS = nullptr;
  PAR_CUDA_ENTRIES(PAR_CUDA_MEMBER)
#undef PAR_CUDA_MEMBER

  /// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
  std::string describe(Result) const;
  /// Throws core::Failure unless `result` is success: "WHAT failed: ERROR".
  void check(Result result, const std::string &what) const;
  /// "CUDA driver 13.0".
  std::string version() const;

private:
  Library library;
  int number = 0;
};

/// Whether a CUDA driver can be opened. Does not start it: a process that has started it must not fork.
bool hasDriver();

} // namespace par::cuda
