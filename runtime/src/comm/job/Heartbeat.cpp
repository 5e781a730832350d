// A rank's second thread.
#include "Heartbeat.h"
#include "Interrupt.h"
#include "comm/shared/Diagnosis.h"
#include "comm/shared/Threads.h"
#include "par/comm/job/Launch.h"
#include "par/messages/CommMessages.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace par::comm;

namespace {

constexpr int tick = 100; // milliseconds
constexpr int64_t second = 1'000'000'000;

bool hasEnded(int pidfd) {
  pollfd polled{pidfd, POLLIN, 0};
  return poll(&polled, 1, 0) == 1;
}

void kill(int pidfd) { syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0); }

} // namespace

void Patience::look() {
  int64_t time = now();
  if (time - last > second)
    since = time;
  last = time;
}

std::optional<double> Patience::exhausted(int64_t beat) const {
  if (beat == 0 || last - std::max(beat, since) < timeout)
    return std::nullopt;
  return double(last - beat) / second;
}

std::optional<double> Patience::worn(int64_t beat) const {
  if (beat == 0 || last - std::max(beat, since) < timeout / 2)
    return std::nullopt;
  return double(last - beat) / second;
}

Heartbeat::Heartbeat(SharedState &sharedState, uint32_t rank, double timeout, std::string bundle,
                     const Supervised *supervised)
    : sharedState(sharedState), rank(rank), bundle(std::move(bundle)), patience(timeout),
      processes(sharedState.world(), -1), supervised(supervised), timeout(int64_t(timeout * second)),
      ending(eventfd(0, EFD_CLOEXEC)) {
  if (ending < 0)
    throw std::runtime_error(say(Sentence::cannotStartThread, 0, std::strerror(errno)));
  sharedState[rank].beat.store(now());
  sharedState[rank].pid.store(getpid());
  if (supervised && !supervised->together)
    sharedState[rank].supervisor.store(getppid());
  thread = startThread([this] { loop(); });
}

Heartbeat::~Heartbeat() {
  eventfd_write(ending, 1);
  thread.join();
  close(ending);
  for (int process : processes)
    if (process >= 0)
      close(process);
}

bool Heartbeat::rest() {
  std::vector<pollfd> polled{{ending, POLLIN, 0}};
  for (uint32_t other = 0; other < processes.size() && mends(sharedState) && !sharedState.aborted(); ++other)
    if (processes[other] >= 0 && !sharedState[other].finished.load() && !sharedState.over.load())
      polled.push_back({processes[other], POLLIN, 0});
  poll(polled.data(), polled.size(), tick);
  return !(polled[0].revents & POLLIN);
}

// The main thread leaves at its next poll; a long kernel or a stuck read would keep it. After a loss it has more time,
// as it goes on; then its supervisor starts the rank again.
void Heartbeat::hurry() {
  bool lost = isLost(sharedState);
  if (!abortSeen)
    abortSeen = now();
  if (now() - abortSeen <= (lost ? timeout : second))
    return;
  if (lost)
    ::kill(getpid(), SIGKILL);
  if (supervised)
    supervised->life().left.store(1);
  _exit(sharedState.code());
}

void Heartbeat::loop() {
  while (rest()) {
    patience.look();
    sharedState[rank].beat.store(now());
    endIfSignalled(sharedState, bundle);
    if (sharedState.aborted()) {
      hurry();
    } else if (sharedState.parent.load()) {
      watchParent();
    } else {
      watchRanks();
    }
  }
}

void Heartbeat::watchParent() {
  std::optional<double> seconds = patience.exhausted(sharedState.parentBeat.load());
  if (!seconds || !sharedState.claim())
    return;
  pid_t parent = sharedState.parent.load();
  std::string line = errorLine(bundle, say(Sentence::lostParent, parent, rank, tenths(*seconds)));
  printLine(line);
  sharedState.abort(exitRankLost, line);
  // Its end ends all ranks.
  ::kill(parent, SIGKILL);
}

void Heartbeat::watchRanks() {
  for (uint32_t other = 0; other < sharedState.world(); ++other) {
    RankState &theirs = sharedState[other];
    if (other == rank || theirs.remote.load() || theirs.finished.load() || theirs.pid.load() == 0)
      continue;
    if (processes[other] < 0)
      processes[other] = int(syscall(SYS_pidfd_open, theirs.pid.load(), 0));
    double silent = double(now() - theirs.beat.load()) / second;
    if (processes[other] < 0 || hasEnded(processes[other])) {
      if (!theirs.finished.load())
        return lost(other, "ended", silent);
    } else if (std::optional<double> seconds = patience.exhausted(theirs.beat.load())) {
      return lost(other, "stopped answering", *seconds);
    }
  }
}

void Heartbeat::lost(uint32_t other, std::string_view how, double seconds) {
  if (mends(sharedState)) {
    if (processes[other] >= 0 && !sharedState.over.load())
      kill(processes[other]);
    return loseHere(sharedState, bundle, other, how, seconds);
  }
  if (!sharedState.claim())
    return;
  std::string line = errorLine(bundle, lostRank(sharedState, other, how, seconds));
  printLine(line);
  if (processes[other] >= 0)
    kill(processes[other]);
  sharedState.abort(exitRankLost, line);
}
