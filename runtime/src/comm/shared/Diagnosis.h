// The message about a rank that is lost.
#pragma once

#include "SharedState.h"
#include "par/comm/engine/Communicator.h"

namespace par::comm {

/// The way to another rank is gone: it or its host is lost.
struct Lost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "rank 5 (pp 1, dp 0, tp 1) ended by signal 9 in step 131; noticed by rank 1 in recv, stage0/backward:88,
/// after 0.4 s; last save ckpt/100; go on with --resume auto". `how` is "ended by signal 9" or the like,
/// `seconds` the time since the rank's last sign of life. Gives the others 150 ms to begin to wait for the
/// rank, so that the message can name one.
std::string lostRank(SharedState &sharedState, uint32_t rank, std::string_view how, double seconds);

/// "host b (ranks 2, 3) stopped answering in step 131: ...", as lostRank(); `ranks` are those of the host.
std::string lostHost(SharedState &sharedState, const std::vector<uint32_t> &ranks, double seconds);

/// Ends the job because a rank or host is lost, and prints the message unless another process says why it ends. If lost
/// ranks are started again it ends only the attempt, and their supervisors say so.
void lose(SharedState &sharedState, std::string_view bundle, std::string_view message, int code = exitRankLost);
/// Says of a loss, after which the job goes on, that it is waited for; once on each host. `first`: rank 0 is lost, or
/// its host, which is waited for under --shrink, too.
void tellLoss(SharedState &sharedState, std::string_view bundle, std::string_view message, bool first = false);
/// lose() of a rank of this host; "ended" and 0.4 are as in lostRank(). Says so if no supervisor of the rank is left,
/// which else does.
void loseHere(SharedState &sharedState, std::string_view bundle, uint32_t rank, std::string_view how, double seconds);
/// "host b (ranks 2, 3) has been silent for 2.5 s in step 131; noticed by rank 1 in recv, stage0/backward:88; after 5.0
/// s the job ends (--timeout)"; under --restart: "it counts as lost".
std::string silentHost(SharedState &sharedState, const std::vector<uint32_t> &ranks, double seconds, double timeout);

/// Once every rank has waited for SharedState::deadlockAfter and none has moved, none ever will: "deadlock: rank 0
/// waits in recv, stage0/forward:3, for rank 1; rank 1 waits in ...". Else nullopt.
std::optional<std::string> deadlock(SharedState &sharedState);

/// How a process ended, from waitpid's status: "ended by signal 9", "ended with exit code 3".
std::string howEnded(int status);

/// "0.4".
std::string tenths(double seconds);

/// Prints a line to stderr in one write. Waits for a reader for three seconds at most, for that of a terminal forever.
void printLine(std::string_view line);
/// "BUNDLE: error: MESSAGE".
std::string errorLine(std::string_view bundle, std::string_view message);
/// "BUNDLE: MESSAGE".
std::string noteLine(std::string_view bundle, std::string_view message);

} // namespace par::comm
