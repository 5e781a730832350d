// par-run -n N. The parent forks the ranks and stays: it hosts the rendezvous, beats, and watches its children.
// Everything that they share is inherited and has no name, so that nothing is left, however they end, and no stranger
// can reach it: the job listens nowhere. They end with the parent.
#include "Heartbeat.h"
#include "Interrupt.h"
#include "Local.h"
#include "Processes.h"
#include "RendezvousClient.h"
#include "comm/shared/Diagnosis.h"
#include "par/messages/CommMessages.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace par::comm;

namespace {

/// A job of forked ranks, made before the first fork.
struct Job {
  Job(const Launch &launch, uint32_t world)
      : launch(launch), world(world), files(SharedFiles::create(world)),
        memory(files.sharedState.map(SharedState::bytesFor(world))),
        sharedState(*SharedState::make(memory.bytes.data(), world)) {}

  const Launch &launch;
  uint32_t world;
  SharedFiles files;
  Mapping memory;
  SharedState &sharedState;
};

/// Blocks the signals that end a job until the destructor.
class SignalsHeld {
public:
  SignalsHeld() {
    sigset_t held;
    sigemptyset(&held);
    for (int signal : endingSignals)
      sigaddset(&held, signal);
    sigprocmask(SIG_BLOCK, &held, &before);
  }
  ~SignalsHeld() { release(); }
  void release() { sigprocmask(SIG_SETMASK, &before, nullptr); }

private:
  sigset_t before;
};

/// All that a child does.
int childMain(Job &job, uint32_t rank, int socket, const std::function<int(Control &)> &rankMain) {
  Join join{hostName(), "-n", "-n", rank, job.world, uint64_t(getpid())};
  Connection connection(socket);
  connection.trust();
  auto look = [&] {
    if (job.sharedState.aborted())
      throw Aborted(job.sharedState.message());
  };
  try {
    Heartbeat heartbeat(job.sharedState, rank, job.launch.timeout, job.launch.bundle);
    std::optional<Joined> joined = enrol(std::move(connection), join, job.launch.joinTimeout, look);
    if (!joined)
      throw LaunchError(exitRankLost, say(Sentence::hostHungUp, rank));
    LaunchEnvironment place;
    place.rank = place.localRank = rank;
    place.world = job.world;
    ClientControl control(job.sharedState, job.launch.bundle, place, std::move(*joined), job.files);
    return runRank(control, job.sharedState, rankMain);
  } catch (const Aborted &) {
    return job.sharedState.code();
  } catch (const std::exception &error) {
    if (job.sharedState.claim())
      printLine(errorLine(job.launch.bundle, error.what()));
    job.sharedState.abort(exitRankLost, error.what());
    return exitRankLost;
  }
}

struct RankProcess {
  pid_t pid = 0;
  int process = -1; ///< pidfd; -1 when reaped
  int socket = -1;  ///< the parent's end of its connection, until the host has it
};

/// The parent's side.
class Parent {
public:
  Parent(Job &job, std::vector<RankProcess> children)
      : job(job), children(std::move(children)), patience(job.launch.timeout) {}

  /// Returns when all children have ended.
  void watch(RendezvousServer &host);
  /// The largest exit code of ranks that left as they should.
  int code() const { return largest; }

private:
  void reap();
  void judge();
  void lose(uint32_t rank, std::string_view how, double seconds, int code = exitRankLost);
  void endLingering();
  std::vector<int> living() const;
  double silence(uint32_t rank) const { return double(now() - job.sharedState[rank].beat.load()) / 1e9; }

  Job &job;
  std::vector<RankProcess> children;
  Patience patience;
  int64_t abortSeen = 0;
  int largest = 0;
};

} // namespace

std::vector<int> Parent::living() const {
  std::vector<int> processes;
  for (const RankProcess &child : children)
    if (child.process >= 0)
      processes.push_back(child.process);
  return processes;
}

void Parent::watch(RendezvousServer &host) {
  for (std::vector<int> alive = living(); !alive.empty(); alive = living()) {
    host.step(100, alive);
    job.sharedState.parentBeat.store(now());
    endIfSignalled(job.sharedState, job.launch.bundle);
    patience.look();
    reap();
    judge();
    endLingering();
  }
}

void Parent::reap() {
  for (uint32_t rank = 0; rank < children.size(); ++rank) {
    RankProcess &child = children[rank];
    int status = 0;
    if (child.process < 0 || waitpid(child.pid, &status, WNOHANG) != child.pid)
      continue;
    close(child.process);
    child.process = -1;
    if (job.sharedState[rank].finished.load() && WIFEXITED(status))
      largest = std::max(largest, WEXITSTATUS(status));
    else if (!job.sharedState.aborted())
      // A rank that cannot come back to its caller, whose mapped file has gone, has said so and ended with 1.
      lose(rank, howEnded(status), silence(rank), WIFEXITED(status) && WEXITSTATUS(status) == 1 ? 1 : exitRankLost);
  }
}

void Parent::judge() {
  for (uint32_t rank = 0; rank < children.size() && !job.sharedState.aborted(); ++rank) {
    std::optional<double> seconds = patience.exhausted(job.sharedState[rank].beat.load());
    if (children[rank].process < 0 || job.sharedState[rank].finished.load() || !seconds)
      continue;
    lose(rank, "stopped answering", *seconds);
    kill(children[rank].pid, SIGKILL);
  }
}

void Parent::lose(uint32_t rank, std::string_view how, double seconds, int code) {
  par::comm::lose(job.sharedState, job.launch.bundle, lostRank(job.sharedState, rank, how, seconds), code);
}

// Ranks leave by themselves when the job ends; one that is stopped cannot.
void Parent::endLingering() {
  if (!job.sharedState.aborted())
    return;
  if (!abortSeen)
    abortSeen = now();
  if (now() - abortSeen > 2'000'000'000)
    for (const RankProcess &child : children)
      if (child.process >= 0)
        kill(child.pid, SIGKILL);
}

static RankProcess forkRank(Job &job, const std::vector<RankProcess> &before, SignalsHeld &held,
                            const std::function<int(Control &)> &rankMain) {
  pid_t parent = getpid();
  auto rank = uint32_t(before.size());
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw LaunchError(exitRankLost, say(Sentence::cannotFork, rank, std::strerror(errno)));
  // A child that is stopped before its first beat is judged from here on.
  job.sharedState[rank].beat.store(now());
  pid_t pid = fork();
  if (pid < 0)
    throw LaunchError(exitRankLost, say(Sentence::cannotFork, rank, std::strerror(errno)));
  if (pid > 0) {
    close(ends[1]);
    return {pid, int(syscall(SYS_pidfd_open, pid, 0)), ends[0]};
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(exitRankLost);
  // Only the parent keeps its ends: a rank's connection ends with the parent or the rank.
  for (const RankProcess &other : before) {
    close(other.socket);
    close(other.process);
  }
  close(ends[0]);
  Interrupt interrupt(job.sharedState, int(rank), CtrlC::inParent);
  held.release();
  int code = childMain(job, rank, ends[1], rankMain);
  std::cout.flush();
  fflush(nullptr);
  _exit(code);
}

int par::comm::runProcesses(const Launch &launch, uint32_t world, const std::function<int(Control &)> &rankMain) {
  Job job(launch, world);
  job.sharedState.parent.store(getpid());
  job.sharedState.parentBeat.store(now());
  job.sharedState.deadlockAfter.store(uint32_t(launch.timeout * 20));
  // Buffered output must not be written again by every child.
  std::cout.flush();
  fflush(nullptr);
  std::vector<RankProcess> children;
  SignalsHeld held;
  try {
    while (children.size() < world)
      children.push_back(forkRank(job, children, held, rankMain));
  } catch (...) {
    for (const RankProcess &child : children)
      kill(child.pid, SIGKILL);
    throw;
  }
  Interrupt interrupt(job.sharedState, -1);
  held.release();
  RendezvousServer host(std::nullopt, {launch.bundle, launch.joinTimeout}, job.sharedState);
  for (RankProcess &child : children)
    host.adopt(std::exchange(child.socket, -1));
  Parent parent(job, std::move(children));
  parent.watch(host);
  if (job.sharedState.aborted())
    return job.sharedState.code();
  return parent.code() ? parent.code() : interruptCode(job.sharedState, launch.bundle);
}
