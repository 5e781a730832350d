// How NCCL names the types and operations of communications.
#pragma once

#include "par/comm/engine/Communicator.h"

namespace par::cuda {

/// ncclDataType_t, and how many of them an element is.
struct WireType {
  int type;
  uint64_t each = 1;
};

/// Throws core::Failure for a type that NCCL does not reduce.
WireType wireType(const comm::Communication &c, bool reduces);
/// ncclRedOp_t: sum, prod, max, min.
int operation(format::Reduction reduction);

} // namespace par::cuda
