// Handling of Ctrl-C and of schedulers' signals. SIGINT, SIGTERM and SIGHUP. Before the first step nothing is lost: the
// job ends at once. From then on it ends after the step, with its save. In every case a line names the process that got
// the signal, and the job's end.
#pragma once

#include "comm/shared/SharedState.h"
#include "par/format/SignalsHeld.h"

#include <array>
#include <csignal>
#include <thread>

namespace par::comm {

/// The signals that ask a job to end.
using format::endingSignals;

/// The process that handles the terminal's Ctrl-C, which reaches the whole process group.
enum class CtrlC : uint8_t { here, inParent };

/// While it lives, the first SIGINT, SIGTERM or SIGHUP in this process asks the job to end, and a second SIGINT
/// or SIGTERM ends the process at once. `rank`: which one this process is, -1 where it is par-run with all of
/// them. One at a time in a process.
class Interrupt {
public:
  Interrupt(SharedState &sharedState, int rank, CtrlC ctrlC = CtrlC::here);
  Interrupt(const Interrupt &) = delete;
  ~Interrupt();

private:
  std::array<struct sigaction, 4> before;
};

/// A signal that asks the job to stop is noted here too, as bits of Signal, and outlives boards: between two attempts
/// of a job there is none. `rank`: which one this process is, -1 where it is par-run with all of them.
void noteSignalsIn(std::atomic<uint64_t> &asked, int rank);

/// "BUNDLE: SIGTERM came to rank 2 (pid 4711) before the first step: ...".
std::string describeEarly(const Signal &signal, const std::string &bundle);

/// Ends a job that got a signal before its first step, and says so; the watcher of the job calls it often.
void endIfSignalled(SharedState &sharedState, const std::string &bundle);

/// Calls endIfSignalled() while it lives, and ends the process where its other threads do not: for jobs without
/// a Heartbeat.
class SignalWatch {
public:
  SignalWatch(SharedState &sharedState, std::string bundle);
  ~SignalWatch();

private:
  std::atomic<bool> ending{false};
  std::thread thread;
};

/// 128 + the signal that any process of the job got (130 for SIGINT), 0 if none. Reports the job's end, unless a
/// process has done so.
int interruptCode(SharedState &sharedState, const std::string &bundle);

} // namespace par::comm
