// NCCL's entry points, as far as they are used. Opened once a process, after the environment that it reads is
// set.
#pragma once

#include "par/cuda/driver/Driver.h"

namespace par::cuda {

using NcclComm = struct NcclCommObject *;

struct NcclId {
  char bytes[128];
};

/// ncclConfig_t as NCCL 2.26 has it; later versions take newer members as not given.
struct NcclConfig {
  static constexpr int unset = -2147483647 - 1; ///< NCCL_CONFIG_UNDEF_INT
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef, version = 22600;
  int blocking = 0, cgaClusterSize = unset, minCtas = unset, maxCtas = unset;
  const char *netName = nullptr;
  int splitShare = 0, trafficClass = unset;
};

/// Members of ncclResult_t and ncclRedOp_t, and the color of a rank that is in no group of a split.
inline constexpr int ncclOk = 0, ncclRemoteError = 6, ncclInProgress = 7, ncclNoColor = -1;
inline constexpr int minNccl = 22600;

#define PAR_NCCL_ENTRIES(M)                                                                                            \
  M(getVersion, int, "ncclGetVersion", (int *version))                                                                 \
  M(uniqueId, int, "ncclGetUniqueId", (NcclId *))                                                                      \
  M(initRank, int, "ncclCommInitRankConfig", (NcclComm *, int ranks, NcclId, int rank, NcclConfig *))                  \
  M(split, int, "ncclCommSplit", (NcclComm, int color, int key, NcclComm *, NcclConfig *))                             \
  M(abort, int, "ncclCommAbort", (NcclComm))                                                                           \
  M(finalize, int, "ncclCommFinalize", (NcclComm))                                                                     \
  M(destroy, int, "ncclCommDestroy", (NcclComm))                                                                       \
  M(asyncError, int, "ncclCommGetAsyncError", (NcclComm, int *error))                                                  \
  M(errorText, const char *, "ncclGetErrorString", (int))                                                              \
  M(lastError, const char *, "ncclGetLastError", (NcclComm))                                                           \
  M(groupStart, int, "ncclGroupStart", ())                                                                             \
  M(groupEnd, int, "ncclGroupEnd", ())                                                                                 \
  M(allReduce, int, "ncclAllReduce", (const void *, void *, size_t n, int type, int op, NcclComm, Stream))             \
  M(broadcast, int, "ncclBroadcast", (const void *, void *, size_t n, int type, int root, NcclComm, Stream))           \
  M(reduce, int, "ncclReduce", (const void *, void *, size_t n, int type, int op, int root, NcclComm, Stream))         \
  M(allGather, int, "ncclAllGather", (const void *, void *, size_t n, int type, NcclComm, Stream))                     \
  M(reduceScatter, int, "ncclReduceScatter", (const void *, void *, size_t n, int type, int op, NcclComm, Stream))     \
  M(send, int, "ncclSend", (const void *, size_t n, int type, int peer, NcclComm, Stream))                             \
  M(recv, int, "ncclRecv", (void *, size_t n, int type, int peer, NcclComm, Stream))

class Nccl {
public:
  /// Throws core::Failure where it is missing or older than 2.26.
  Nccl();
#define PAR_NCCL_MEMBER(NAME, RESULT, SYMBOL, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  PAR_NCCL_ENTRIES(PAR_NCCL_MEMBER)
#undef PAR_NCCL_MEMBER
  /// "NCCL 2.28.9".
  std::string describe() const;

private:
  Library library;
  int version = 0;
};

} // namespace par::cuda
