// The message about a rank that is lost.
#include "Diagnosis.h"
#include "par/comm/shared/Output.h"
#include "par/format/Colors.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace par;
using namespace par::comm;

namespace {

/// The rank whose waiting points at `lost`, else any waiting rank.
struct Witness {
  uint32_t rank = 0;
  Waiting waiting;
  bool direct = false;
};

std::optional<Witness> findWitness(SharedState &sharedState, uint32_t lost) {
  std::optional<Witness> any;
  for (uint32_t rank = 0; rank < sharedState.world(); ++rank) {
    if (rank == lost)
      continue;
    Waiting waiting = sharedState[rank].waiting();
    if (waiting.kind.empty())
      continue;
    bool direct = std::find(waiting.ranks.begin(), waiting.ranks.end(), lost) != waiting.ranks.end();
    if (direct)
      return Witness{rank, waiting, true};
    if (!any)
      any = Witness{rank, waiting, false};
  }
  return any;
}

/// A rank of this host that waits for no other as far as the engine knows: it computes, or is inside MPI.
std::optional<Witness> findWorker(SharedState &sharedState, uint32_t lost) {
  for (uint32_t rank = 0; rank < sharedState.world(); ++rank) {
    RankState &state = sharedState[rank];
    std::string instruction = state.instruction.get();
    if (rank != lost && !state.remote.load() && !state.finished.load() && !instruction.empty())
      return Witness{rank, {{}, state.entry.get(), instruction}, false};
  }
  return std::nullopt;
}

/// `startedSteps` of a lost rank. Other hosts tell of their ranks several times a second, and steps may be shorter: a
/// rank of this host that waits for the lost one knows better.
uint64_t stepsOfLost(SharedState &sharedState, uint32_t lost, const std::optional<Witness> &witness) {
  uint64_t started = sharedState[lost].startedSteps.load();
  if (sharedState[lost].remote.load() && witness && witness->direct && !sharedState[witness->rank].remote.load())
    started = std::max(started, sharedState[witness->rank].startedSteps.load());
  return started;
}

/// The facts around a lost rank, as words.
struct Loss {
  std::string when, witness, saved;
};

Loss lossOf(SharedState &sharedState, uint32_t rank) {
  std::optional<Witness> witness = findWitness(sharedState, rank);
  for (int i = 0; i < 15 && !mends(sharedState) && !(witness && witness->direct); ++i) {
    usleep(10'000);
    witness = findWitness(sharedState, rank);
  }
  if (!witness)
    witness = findWorker(sharedState, rank);
  uint64_t steps = stepsOfLost(sharedState, rank, witness);
  std::string saved = sharedState.saved.get();
  return {steps ? "in step " + std::to_string(steps - 1) : "before its first step",
          witness ? "rank " + std::to_string(witness->rank) + " in " + witness->waiting.kind + ", " +
                        witness->waiting.instruction
                  : "par-run",
          saved.empty() ? "nothing was saved"
                        : "last save " + saved + (mends(sharedState) ? "" : "; go on with --resume auto")};
}

} // namespace

std::string par::comm::lostRank(SharedState &sharedState, uint32_t rank, std::string_view how, double seconds) {
  Loss loss = lossOf(sharedState, rank);
  std::string coordinates = sharedState[rank].coordinates.get(), host = sharedState[rank].host.get();
  std::string where = (coordinates.empty() ? "" : " (" + coordinates + ")") + (host.empty() ? "" : " on " + host);
  return say(Sentence::lostRank, rank, where, how, loss.when, loss.witness, tenths(seconds), loss.saved);
}

static std::string listed(const std::vector<uint32_t> &ranks) {
  std::string all;
  for (uint32_t rank : ranks)
    all += (all.empty() ? "" : ", ") + std::to_string(rank);
  return all;
}

std::string par::comm::lostHost(SharedState &sharedState, const std::vector<uint32_t> &ranks, double seconds) {
  Loss loss = lossOf(sharedState, ranks.front());
  return say(Sentence::lostHost, sharedState[ranks.front()].host.get(), ranks.size() == 1 ? "" : "s", listed(ranks),
             loss.when, ranks.front(), loss.witness, tenths(seconds), loss.saved);
}

std::string par::comm::silentHost(SharedState &sharedState, const std::vector<uint32_t> &ranks, double seconds,
                                  double timeout) {
  Loss loss = lossOf(sharedState, ranks.front());
  return say(Sentence::silentHost, sharedState[ranks.front()].host.get(), ranks.size() == 1 ? "" : "s", listed(ranks),
             tenths(seconds), loss.when, loss.witness, tenths(timeout),
             mends(sharedState) ? "it counts as lost" : "the job ends");
}

void par::comm::lose(SharedState &sharedState, std::string_view bundle, std::string_view message, int code) {
  if (sharedState.over.load())
    return;
  std::string line = errorLine(bundle, message);
  if (!mends(sharedState) && sharedState.claim())
    printLine(line);
  sharedState.abort(code, line, mends(sharedState));
}

void par::comm::tellLoss(SharedState &sharedState, std::string_view bundle, std::string_view message, bool first) {
  const char *flag = sharedState.shrinks.load() && !first ? "--shrink" : "--join-timeout";
  if (sharedState.lossTold.exchange(1) == 0)
    printLine(noteLine(bundle, say(Sentence::waitsForHost, message, flag)));
}

/// Whether a process has ended, reaped or not.
static bool hasEnded(pid_t pid) {
  int process = int(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0)
    return errno == ESRCH;
  pollfd polled{process, POLLIN, 0};
  bool ended = poll(&polled, 1, 0) == 1;
  close(process);
  return ended;
}

void par::comm::loseHere(SharedState &sharedState, std::string_view bundle, uint32_t rank, std::string_view how,
                         double seconds) {
  std::string message = lostRank(sharedState, rank, how, seconds);
  bool first = mends(sharedState) && !sharedState.aborted() && !sharedState.over.load();
  lose(sharedState, bundle, message);
  if (pid_t supervisor = sharedState[rank].supervisor.load(); first && supervisor && hasEnded(supervisor))
    tellLoss(sharedState, bundle, message, rank == 0);
}

std::optional<std::string> par::comm::deadlock(SharedState &sharedState) {
  std::string all;
  for (uint32_t rank = 0; rank < sharedState.world(); ++rank) {
    if (sharedState[rank].idle.load(std::memory_order_relaxed) < sharedState.deadlockAfter.load())
      return std::nullopt;
    Waiting waiting = sharedState[rank].waiting();
    std::string ranks = waiting.ranks.size() > 1 ? "ranks" : "rank";
    for (size_t i = 0; i < waiting.ranks.size(); ++i)
      ranks += (i ? ", " : " ") + std::to_string(waiting.ranks[i]);
    all += (rank ? "; " : "") + say(Sentence::waits, rank, waiting.kind, waiting.instruction, ranks);
  }
  return say(Sentence::deadlocked, all);
}

std::string par::comm::tenths(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", seconds);
  return text;
}

std::string par::comm::howEnded(int status) {
  if (WIFSIGNALED(status))
    return "ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

void par::comm::printLine(std::string_view line) {
  // A job's end is told to its ranks after it has been said, and they may not wait for a reader that never comes.
  constexpr int64_t maxTime = 3'000'000'000;
  std::string text = format::colored(format::printable(std::string(line), "\n")) + "\n";
  if (isatty(STDERR_FILENO))
    writeOutput(STDERR_FILENO, text);
  else
    writeOutput(STDERR_FILENO, text, maxTime);
}

std::string par::comm::noteLine(std::string_view bundle, std::string_view message) {
  return std::string(bundle) + (bundle.empty() ? "" : ": ") + std::string(message);
}

std::string par::comm::errorLine(std::string_view bundle, std::string_view message) {
  return noteLine(bundle, "error: " + std::string(message));
}
