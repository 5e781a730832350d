// The attempts of a job, as one rank's process makes them.
#include "Attempts.h"
#include "Processes.h"
#include "comm/shared/Diagnosis.h"
#include "comm/shared/Threads.h"
#include "par/messages/CommMessages.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace par::comm;

namespace {

constexpr int beatTime = 100; // milliseconds

/// Shows the supervisor, while it lives, that this process is not stopped.
class BeatThread {
public:
  explicit BeatThread(RankLife &life)
      : life(life), ending(eventfd(0, EFD_CLOEXEC)), thread(startThread([this] { loop(); })) {}
  ~BeatThread() {
    eventfd_write(ending, 1);
    thread.join();
    close(ending);
  }

private:
  void loop() {
    do
      life.beat.store(now());
    while (poll(std::array<pollfd, 1>{{{ending, POLLIN, 0}}}.data(), 1, beatTime) == 0);
  }

  RankLife &life;
  int ending;
  std::thread thread;
};

/// Counts attempts that end before a step has begun. Since a rank that is lost three times in one step ends the job,
/// losses of ranks explain only so many of them.
class Progress {
public:
  Progress(const LaunchEnvironment &place, RankLife &life) : place(place), life(life), step(life.step.load()) {}

  /// To be called after a loss; throws LaunchError where it is one too many.
  void look(const std::string &loss) {
    if (uint64_t made = life.step.load(); made != step) {
      step = made;
      vain = 0;
    }
    if (++vain > 3 * place.world)
      throw LaunchError(exitRankLost, say(Sentence::noProgress, place.rank, vain, step, loss));
  }

private:
  const LaunchEnvironment &place;
  RankLife &life;
  uint64_t step;
  uint32_t vain = 0;
};

} // namespace

int par::comm::runAttempts(const Launch &launch, const LaunchEnvironment &place, const Supervised &supervised,
                           const std::function<int(Control &)> &rankMain) {
  RankLife &life = supervised.life();
  int code = exitRankLost;
  try {
    BeatThread beats(life);
    Progress progress(place, life);
    for (;;) {
      Ended ended = runUnderLauncher(launch, place, rankMain, &supervised);
      code = ended.code;
      if (!ended.loss)
        break;
      supervised.lives.noteLoss(now());
      if (uint64_t most = *launch.restarts; life.attempts.load() > most && !launch.shrink) {
        if (!supervised.together)
          printLine(say(Sentence::restartsSpent, *ended.loss, most, most, most));
        break;
      }
      progress.look(*ended.loss);
    }
  } catch (const LaunchError &error) {
    printLine(errorLine(launch.bundle, error.what()));
    code = error.code;
  } catch (const std::exception &error) {
    printLine(errorLine(launch.bundle, error.what()));
  }
  life.left.store(1);
  return code;
}
