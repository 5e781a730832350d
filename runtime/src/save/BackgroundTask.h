// Work on a thread of its own, beside the steps.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>

namespace par::core {

class BackgroundTask {
public:
  /// `stop` is set once the result is not needed any more.
  using Work = std::function<void(const std::atomic<bool> &stop)>;

  BackgroundTask() = default;
  BackgroundTask(const BackgroundTask &) = delete;
  BackgroundTask &operator=(const BackgroundTask &) = delete;
  /// Asks the work to stop and waits for it.
  ~BackgroundTask();

  /// Begins; the one before must have been waited for. Its thread gives way to threads that compute. If the system
  /// gives no thread, the work is done at once.
  void start(Work work);
  /// The same without a thread.
  void runHere(const Work &work);
  bool done() const { return finished; }
  /// Throws what the work threw. Returns at once where nothing was started.
  void wait();

private:
  std::thread thread;
  std::atomic<bool> finished = true, stop = false;
  std::exception_ptr failure;
};

} // namespace par::core
