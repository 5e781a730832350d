// The supervisor of ranks under --restart: par-run -n has one for all, and each process that a launcher starts is one
// for its rank. It has opened what the ranks need, so that a rank that is started again opens nothing twice; it has no
// threads, holds the memory and the port that outlive its ranks, and takes part in no attempt.
#include "Attempts.h"
#include "Heartbeat.h"
#include "Interrupt.h"
#include "Processes.h"
#include "Seats.h"
#include "comm/shared/Diagnosis.h"
#include "par/messages/CommMessages.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace par::comm;

namespace {

constexpr int64_t aSecond = 1'000'000'000;
constexpr int lookTime = 10; // milliseconds
/// A longer time between two looks is one in which this process itself was stopped.
constexpr int64_t ownStop = aSecond / 5;
/// How long a process may be stopped, and how long after the end of the job it may take to leave.
constexpr int64_t stoppedTime = aSecond / 20, failedTime = 2 * aSecond, doneTime = 10 * aSecond,
                  unfinishedTime = aSecond;
/// A rank that is lost so often in one step ends the job.
constexpr size_t maxDeaths = 3;

/// The end of a rank's process that was not its own will.
struct Death {
  uint64_t step;
  std::string how, where; ///< "was killed by signal 9", " at stage0/forward:3"
};

/// A rank and its process.
struct Child {
  LaunchEnvironment place;
  SharedFile kept, arena, keptOther; ///< the last one under --shrink
  std::array<SharedFile, 2> mirrors; ///< under --mirror
  pid_t pid = 0;
  int process = -1;     ///< pidfd; -1 where there is none
  int64_t stopped = 0;  ///< since when
  std::string killed{}; ///< why the supervisor has killed it
  std::vector<Death> deaths{};
};

class Supervisor {
public:
  Supervisor(const Launch &launch, std::vector<LaunchEnvironment> places, Listener listener,
             const std::function<int(Control &)> &rankMain);
  ~Supervisor();
  int run();

private:
  void start(Child &child);
  [[noreturn]] void runChild(uint32_t place);
  void wait();
  void reap(Child &child);
  void judge(Child &child);
  void ended(Child &child, int status);
  void lost(Child &child, const std::string &how);
  bool leavesBehind(Child &child, const std::string &how, const std::string &why);
  void giveUp(const std::string &why, int result = exitRankLost, bool othersKnow = false, bool mayLeave = false);
  void endLingering();
  void kill(Child &child, const std::string &why);
  RankLife &lifeOf(const Child &child) { return lives[uint32_t(&child - children.data())]; }
  bool alive() const;

  const Launch &launch;
  const std::function<int(Control &)> &rankMain;
  Listener listener;
  std::vector<Child> children;
  Lives lives;
  Patience patience;
  bool together;
  int64_t lastLook = now(), leaving = 0; ///< when the first rank has left
  int code = 0;
};

/// Whether a signal has ended a process that is not reaped yet.
bool wasKilled(pid_t pid) {
  siginfo_t info{};
  int none = waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT);
  return none == 0 && info.si_pid == pid && info.si_code != CLD_EXITED;
}

std::array<SharedFile, 2> mirrorsOf(const Launch &launch) {
  std::array<SharedFile, 2> mirrors;
  for (SharedFile &mirror : mirrors)
    if (launch.mirror)
      mirror = SharedFile::create("par-mirror");
  return mirrors;
}

/// " (dp 3)", "".
std::string nameOf(const RankLife &life) {
  std::string coordinates = life.coordinates.get();
  return coordinates.empty() ? "" : " (" + coordinates + ")";
}

} // namespace

Supervisor::Supervisor(const Launch &launch, std::vector<LaunchEnvironment> places, Listener listener,
                       const std::function<int(Control &)> &rankMain)
    : launch(launch), rankMain(rankMain), listener(std::move(listener)),
      lives(uint32_t(places.size()), places.front().world), patience(launch.timeout),
      together(places.size() == places.front().world) {
  for (LaunchEnvironment &place : places)
    children.push_back({std::move(place), SharedFile::create("par-kept"), SharedFile::create("par-arena"),
                        launch.shrink ? SharedFile::create("par-kept-other") : SharedFile(), mirrorsOf(launch)});
}

Supervisor::~Supervisor() {
  for (Child &child : children)
    if (child.process >= 0) {
      ::kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
      close(child.process);
    }
}

bool Supervisor::alive() const {
  return std::any_of(children.begin(), children.end(), [](const Child &child) { return child.process >= 0; });
}

void Supervisor::start(Child &child) {
  // Buffered output must not be written again by the child.
  std::cout.flush();
  fflush(nullptr);
  RankLife &life = lifeOf(child);
  life.left.store(0);
  life.finished.store(0);
  life.beat.store(now());
  child.stopped = 0;
  child.killed.clear();
  pid_t parent = getpid();
  child.pid = fork();
  if (child.pid < 0)
    throw LaunchError(exitRankLost, say(Sentence::cannotFork, child.place.rank, std::strerror(errno)));
  if (child.pid > 0) {
    child.process = int(syscall(SYS_pidfd_open, child.pid, 0));
    return;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(exitRankLost);
  runChild(uint32_t(&child - children.data()));
}

void Supervisor::runChild(uint32_t place) {
  for (const Child &other : children)
    if (other.process >= 0)
      close(other.process);
  const LaunchEnvironment &own = children[place].place;
  noteSignalsIn(lives.asked(), int(own.rank));
  std::vector<int> none(own.world, -1), nothing;
  Supervised supervised{lives, place, none, launch.shrink ? none : nothing, together ? none : nothing};
  supervised.listener = listener.socket();
  supervised.together = together;
  for (size_t side = 0; side < 2; ++side)
    supervised.mirrors[side] = children[place].mirrors[side].descriptor();
  for (const Child &child : children) {
    supervised.kept[child.place.rank] = child.kept.descriptor();
    if (launch.shrink)
      supervised.keptOther[child.place.rank] = child.keptOther.descriptor();
    if (together)
      supervised.arenas[child.place.rank] = child.arena.descriptor();
  }
  int result = runAttempts(launch, own, supervised, rankMain);
  std::cout.flush();
  fflush(nullptr);
  _exit(result);
}

int Supervisor::run() {
  noteSignalsIn(lives.asked(), together ? -1 : int(children.front().place.rank));
  for (Child &child : children)
    start(child);
  while (alive()) {
    wait();
    // The reason before its consequence: ranks that leave because of a loss may have ended in the same moment.
    for (Child &child : children)
      if (child.process >= 0 && !lifeOf(child).finished.load() && wasKilled(child.pid))
        reap(child);
    for (Child &child : children)
      if (child.process >= 0) {
        reap(child);
        judge(child);
      }
    endLingering();
  }
  return code;
}

void Supervisor::wait() {
  std::vector<pollfd> polled;
  for (const Child &child : children)
    if (child.process >= 0)
      polled.push_back({child.process, POLLIN, 0});
  poll(polled.data(), polled.size(), lookTime);
  patience.look();
  // If this process itself was stopped, as by the terminal, its ranks were, too.
  if (now() - lastLook > ownStop)
    for (Child &child : children)
      child.stopped = child.stopped ? now() : 0;
  lastLook = now();
}

void Supervisor::reap(Child &child) {
  int status = 0;
  if (waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) != child.pid)
    return;
  if (WIFSTOPPED(status))
    child.stopped = now();
  else if (WIFCONTINUED(status))
    child.stopped = 0;
  else
    ended(child, status);
}

void Supervisor::judge(Child &child) {
  if (child.process < 0 || !child.killed.empty())
    return;
  if (child.stopped && now() - child.stopped > stoppedTime) {
    lives.noteLoss(child.stopped);
    kill(child, "was stopped for " + tenths(double(now() - child.stopped) / aSecond) + " s");
  } else if (std::optional<double> seconds = patience.exhausted(lifeOf(child).beat.load())) {
    kill(child, "did not answer for " + tenths(*seconds) + " s");
  }
}

void Supervisor::kill(Child &child, const std::string &why) {
  child.killed = why;
  ::kill(child.pid, SIGKILL);
}

void Supervisor::ended(Child &child, int status) {
  close(std::exchange(child.process, -1));
  RankLife &life = lifeOf(child);
  if (WIFEXITED(status) && life.left.load()) {
    code = std::max(code, WEXITSTATUS(status));
    leaving = leaving ? leaving : now();
  } else if (leaving) {
    // The job has its code: after a rank left well all had done their work.
  } else if (WIFEXITED(status)) {
    // A rank that cannot come back to its caller, whose mapped file has gone, has said so and ended with 1.
    std::string why = say(Sentence::leftAlone, child.place.rank, nameOf(life), howEnded(status), life.step.load());
    giveUp(why, WEXITSTATUS(status) == 1 ? 1 : exitRankLost);
  } else {
    lives.noteLoss(now());
    lost(child, child.killed.empty() ? "was killed by signal " + std::to_string(WTERMSIG(status)) : child.killed);
  }
}

void Supervisor::lost(Child &child, const std::string &how) {
  RankLife &life = lifeOf(child);
  uint64_t step = life.step.load(), made = life.attempts.load(), most = *launch.restarts;
  std::string at = life.instruction.get(), where = at.empty() ? "" : ", at " + at, name = nameOf(life);
  uint32_t rank = child.place.rank;
  child.deaths.push_back({step, how, where});
  std::erase_if(child.deaths, [&](const Death &death) { return death.step != step; });
  if (child.deaths.size() >= maxDeaths) {
    std::string story;
    for (const Death &death : child.deaths)
      story += (story.empty() ? "" : "; ") + death.how + death.where;
    if (leavesBehind(child, how, "it was lost three times in this step"))
      return;
    return giveUp(say(Sentence::diedThrice, rank, name, step, story), exitRankLost, false, rank > 0);
  }
  if (made > most && leavesBehind(child, how, "--restart=" + std::to_string(most) + " has been reached"))
    return;
  if (made > most)
    return giveUp(say(Sentence::startsNoMore, rank, name, how, step, where, made - 1, most, most), exitRankLost,
                  !launch.shrink, rank > 0);
  std::string number = " (" + std::to_string(std::max<uint64_t>(made, 1)) + " of " + std::to_string(most) + ")";
  if (most == UINT64_MAX)
    number.clear();
  printLine(noteLine(launch.bundle, say(Sentence::startsAgain, rank, name, how, step, where, number)));
  start(child);
}

/// Under --shrink the ranks of one par-run go on without one that is not started again, if the family has a member for
/// as few as are left. Rank 0 cannot be spared: it hosts the rendezvous.
bool Supervisor::leavesBehind(Child &child, const std::string &how, const std::string &why) {
  Seats seats(launch, uint32_t(children.size()), &lives);
  auto left = std::count_if(children.begin(), children.end(), [](const Child &other) { return other.process >= 0; });
  uint32_t rank = child.place.rank;
  if (!together || !launch.shrink || rank == 0 || !seats.membersFor(size_t(left)))
    return false;
  seats.setGone(rank, true);
  std::string at = child.deaths.back().where;
  printLine(noteLine(launch.bundle, say(Sentence::goesOnWithout, rank, nameOf(lifeOf(child)), how,
                                        child.deaths.back().step, at, why)));
  return true;
}

void Supervisor::giveUp(const std::string &why, int result, bool othersKnow, bool mayLeave) {
  printLine(errorLine(launch.bundle, why));
  code = std::max(code, result);
  leaving = leaving ? leaving : now();
  for (Child &other : children)
    if (other.process >= 0)
      kill(other, "the job has ended");
  const LaunchEnvironment &place = children.front().place;
  if (!together && !othersKnow)
    tellGivenUp(launch, place, why, std::move(listener), lives[0].attempts.load(), mayLeave);
}

void Supervisor::endLingering() {
  if (!leaving)
    return;
  int64_t since = now() - leaving;
  for (Child &child : children) {
    int64_t most = code ? failedTime : lifeOf(child).finished.load() ? doneTime : unfinishedTime;
    if (child.process >= 0 && child.killed.empty() && since > most)
      kill(child, "the job has ended");
  }
}

int par::comm::runSupervised(const Launch &launch, std::vector<LaunchEnvironment> places, Listener listener,
                             const std::function<int(Control &)> &rankMain) {
  return Supervisor(launch, std::move(places), std::move(listener), rankMain).run();
}
