// The agreement of ranks before they call NCCL to join them.
#pragma once

#include "par/cuda/comm/Communicators.h"
#include "par/cuda/comm/Nccl.h"

namespace par::cuda {

/// "3", or "3 on b" where ranks run on several hosts.
std::string describeRank(const comm::Control &control);

struct NcclMeeting {
  NcclId id{};                    ///< of the world, made by rank 0's NCCL
  std::vector<std::string> notes; ///< for ranks that do not find each other
  std::string remark;             ///< "" where nothing is to be said
};

/// Collective. Rank 0 compares the facts of all, and throws core::Failure where NCCL could not join them. The id goes
/// to the ranks by the job's rendezvous, sealed: whoever knows it could join.
NcclMeeting meetForNccl(const CommunicatorsOf &of, const Nccl &nccl);

} // namespace par::cuda
