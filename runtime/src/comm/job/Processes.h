// Ranks that are processes.
#pragma once

#include "Life.h"
#include "Socket.h"
#include "par/comm/job/Launch.h"

namespace par::comm {

/// Forks `world` ranks, hosts their rendezvous, watches them, and returns the job's exit code.
int runProcesses(const Launch &launch, uint32_t world, const std::function<int(Control &)> &rankMain);

/// How an attempt of a job ended for a rank.
struct Ended {
  int code = 0;
  /// The loss of a rank or host that ended it, after which the next attempt goes on; nullopt where the job has ended.
  std::optional<std::string> loss{};
};

/// Runs the rank that a launcher has made this process; rank 0 hosts the rendezvous in a thread. `supervised`: where
/// lost ranks are started again; this is one attempt then.
Ended runUnderLauncher(const Launch &launch, const LaunchEnvironment &place,
                       const std::function<int(Control &)> &rankMain, const Supervised *supervised = nullptr);

/// Tells the ranks of a job, which wait for the rank of `place` to come again, why it does not. `port`: of rank 0's
/// supervisor; `attempts`: that the rank has joined; `mayLeave`: the job may go on without it (--shrink).
void tellGivenUp(const Launch &launch, const LaunchEnvironment &place, const std::string &why, Listener port,
                 uint64_t attempts, bool mayLeave);

/// Waits at the rendezvous until a rank's place is to be taken: which one; nullopt where the job has ended without.
/// Throws LaunchError or Refused.
std::optional<uint32_t> waitAsSpare(const Launch &launch, const LaunchEnvironment &place);

/// Starts the ranks of `places`, all by -n or a launcher's one, watches them, and starts again those that are lost.
/// Returns the exit code.
int runSupervised(const Launch &launch, std::vector<LaunchEnvironment> places, Listener listener,
                  const std::function<int(Control &)> &rankMain);

} // namespace par::comm
