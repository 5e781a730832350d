// Starts the ranks of a job. par-run's whole main is: read flags, fill a Launch, return run(launch, rankMain). Every
// way of starting ends in rankMain(control), once per rank: forked processes (`-n N`), threads (`-n N --comm inproc`),
// or this one process where a launcher (torchrun, mpirun, srun) or `--rank --world --master` started it.
#pragma once

#include "par/comm/job/Control.h"

#include <map>
#include <optional>
#include <vector>

namespace par::comm {

/// This process's place in a launcher's job.
struct LaunchEnvironment {
  uint32_t rank = 0, world = 1, localRank = 0; ///< world: without spares
  bool spare = false;                          ///< `rank` is no rank of the job but its number among all processes
  bool localGiven = false;        ///< localRank is the launcher's; elsewhere a rank counts among those of its host
  std::string host = "127.0.0.1"; ///< of the rendezvous
  uint16_t port = 0;
  bool agentStore = false; ///< torchrun's agent may hold `port`: the first free of the 16 above it is taken
  std::string job;         ///< the launcher's name of the job, "" where it has none: another job's ranks are refused
  std::string rankSource, worldSource; ///< what said so: "RANK" and "WORLD_SIZE", "--rank" and "--world", ...
};

/// Which communicator carries the buffers. tcp and mpi: between hosts; ranks of one host share memory. device: NCCL or
/// the like, between hosts too.
enum class Transport : uint8_t { automatic, inproc, shm, tcp, mpi, device };

/// The launch options of par-run. Empty optionals: not given.
struct Launch {
  std::string bundle;        ///< as typed; errors begin with it
  uint32_t bundleRanks = 1;  ///< ranks that the bundle is for
  std::string mesh;          ///< "pp 2 x dp 2 x tp 2"
  std::optional<uint32_t> n; ///< -n
  Transport transport = Transport::automatic;
  std::optional<uint32_t> rank, world; ///< --rank, --world
  std::string master;                  ///< --master HOST:PORT
  double timeout = 5;      ///< --timeout: seconds without a heartbeat; ranks that all wait twice as long: deadlock
  double joinTimeout = 60; ///< seconds until all ranks must have come
  /// --restart: how often lost ranks are started again (UINT64_MAX: as often as they are lost); absent: never.
  std::optional<uint64_t> restarts;
  /// --shrink: seconds for which lost ranks are waited for; then the job goes on without them, with as many ranks as
  /// one of `members` says. Needs `restarts`.
  std::optional<double> shrink;
  /// Numbers of ranks for which the family of the bundle has a member.
  std::vector<uint32_t> members;
  /// By such a number, for each rank the first one that holds the same state.
  std::map<uint32_t, std::vector<uint32_t>> replicas;
  uint32_t spares = 0;  ///< --spares: the last processes of the launcher, which wait to take the place of lost ranks
  bool mirror = false;  ///< --mirror: each rank has memory for state of a neighbour
  bool callers = false; ///< each process of a launcher has a caller, who is told why the job ended
};

/// A mistake in how the job was started; what() is the message without "NAME: error: ".
struct LaunchError : std::runtime_error {
  LaunchError(int code, const std::string &message) : std::runtime_error(message), code(code) {}
  int code; ///< exit code
};

/// Reads the place from flags or the environment (of torchrun, Open MPI, PMI or Slurm); nullopt where neither
/// says anything. Throws LaunchError when two disagree or one is incomplete. Slurm with fewer tasks than
/// another launcher has ranks has started that launcher, not the ranks, and does not count.
std::optional<LaunchEnvironment> findPlace(const Launch &launch, const std::map<std::string, std::string> &environment);

/// Handles SIGINT, SIGTERM and SIGHUP before run() has a job and after it: prints "BUNDLE: SIGTERM came to WHO before
/// the first step: ..." and ends the process. run() calls it itself; tools call it before they load.
void endOnSignals(const std::string &bundle, std::string_view who);
/// "rank 2 (pid 4711)", or "par-run (pid 4711)" where this process is to start the ranks.
std::string describeProcess(const std::optional<LaunchEnvironment> &place);

/// The same with the environment of this process.
std::optional<LaunchEnvironment> placeOfProcess(const Launch &launch);

/// Runs the job and returns the exit code of this process. `rankMain` returns the rank's exit code: not 0
/// ends the job everywhere, and the rank has said why (Control::fail() says it once for all ranks). An
/// exception out of it ends the job with exitRankLost and its text. Call from the main thread while there is
/// no other one. A job of one rank, and `inproc`, use neither sockets nor shared memory.
///
/// The first SIGINT, SIGTERM or SIGHUP lets startStep() answer false on all ranks at the same step (130, 143, 129
/// when all have ended well), before the first step it ends the job; a second SIGINT or SIGTERM ends at once. Codes: 0;
/// the code of the rank that ended the job; 2 for errors of the launch (and 1 where bundles differ); exitRankLost where
/// a rank died, stopped answering, or ranks did not match.
int run(const Launch &launch, const std::function<int(Control &)> &rankMain);

} // namespace par::comm
