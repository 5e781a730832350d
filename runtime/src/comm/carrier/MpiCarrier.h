// Buffers between hosts over MPI, of ranks that mpirun or srun has started: MPI has ended its own rendezvous then.
#pragma once

#include "TcpConnections.h"

namespace par::comm {

/// Collective: every rank calls it. The ranks of MPI's world must be those of the job. Throws std::runtime_error.
std::shared_ptr<HostCarrier> connectByMpi(const CarrierOf &of);

} // namespace par::comm
