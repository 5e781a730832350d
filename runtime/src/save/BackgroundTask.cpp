#include "BackgroundTask.h"

#include "comm/shared/Threads.h"
#include "par/comm/shared/SignalStack.h"

#include <stdexcept>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace par::core {

/// Niceness of the thread: it gets a quarter of a core that one rank computes on, a tenth where four do, and all of one
/// that idles. A run under --restart goes back to the save that was being written, so that a slow one costs steps.
static constexpr int givesWay = 4;

BackgroundTask::~BackgroundTask() {
  stop = true;
  if (thread.joinable())
    thread.join();
}

void BackgroundTask::runHere(const Work &work) {
  finished = false;
  try {
    work(stop);
  } catch (...) {
    failure = std::current_exception();
  }
  finished = true;
}

void BackgroundTask::start(Work work) {
  finished = false;
  try {
    thread = comm::startThread([this, work] {
      comm::useSignalStack();
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), givesWay); // of this thread, on Linux
      runHere(work);
    });
  } catch (const std::runtime_error &) {
    runHere(work);
  }
}

void BackgroundTask::wait() {
  if (thread.joinable())
    thread.join();
  if (failure)
    std::rethrow_exception(std::exchange(failure, nullptr));
}

} // namespace par::core
