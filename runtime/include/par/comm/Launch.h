//===- Launch.h - how the ranks of a job come to be -----------------------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// par-run's whole main is: read flags, fill a Launch, return run(launch, rankMain). Every way of starting
// ends in rankMain(control), once per rank: forked processes (`-n N`), threads (`-n N --comm inproc`), or
// this one process where a launcher (torchrun, mpirun, srun) or `--rank --world --master` started it.
//
//===----------------------------------------------------------------------===//
#ifndef PAR_COMM_LAUNCH_H
#define PAR_COMM_LAUNCH_H

#include "par/comm/Control.h"

#include <map>
#include <optional>

namespace par::comm {

/// Where a launcher has put this process.
struct Place {
  uint32_t rank = 0, world = 1, localRank = 0;
  std::string host = "127.0.0.1"; ///< of the rendezvous
  uint16_t port = 0;
  bool agentStore = false; ///< torchrun's agent may hold `port`: the first free of the 16 above it is taken
  std::string source;      ///< what said so: "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "--world", ...
};

/// Which communicator carries the buffers.
enum class Transport { automatic, inproc, shm };

/// What par-run was told. Empty optionals: not given.
struct Launch {
  std::string bundle;        ///< as typed; errors begin with it
  uint32_t bundleRanks = 1;  ///< ranks that the bundle is for
  std::string mesh;          ///< "pp 2 x dp 2 x tp 2"
  std::optional<uint32_t> n; ///< -n
  Transport transport = Transport::automatic;
  std::optional<uint32_t> rank, world; ///< --rank, --world
  std::string master;                  ///< --master HOST:PORT
  double timeout = 5;                  ///< --timeout: seconds without a heartbeat
  double joinTimeout = 60;             ///< seconds until all ranks must have come
};

/// Exit code of a job in which a rank died or stopped, or ranks disagreed.
inline constexpr int exitRankLost = 4;

/// Reads the place from flags or the environment; nullopt where neither says anything. Throws
/// std::runtime_error ("error: ..." without the bundle's name) when two disagree or one is incomplete.
std::optional<Place> findPlace(const Launch &launch, const std::map<std::string, std::string> &environment);

/// Runs the job and returns the exit code of this process. `rankMain` returns the rank's exit code; an
/// exception out of it ends the job with exitRankLost and its text. Call from the main thread while there is
/// no other one. A job of one rank uses neither sockets nor shared memory.
///
/// Codes: the ranks' own if they agree, 130 after an interrupt that finished its step, exitRankLost where a
/// rank died, stopped answering, or the ranks did not agree.
int run(const Launch &launch, const std::function<int(Control &)> &rankMain);

} // namespace par::comm

#endif // PAR_COMM_LAUNCH_H
