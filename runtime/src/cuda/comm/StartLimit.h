// Ends a job whose communicators are not made in time. Some calls of NCCL wait for other ranks and do not return where
// these are not reached: a thread of its own looks at the clock.
#pragma once

#include "par/comm/job/Control.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace par::cuda {

class StartLimit {
public:
  /// `say` makes the message, from the communicator and the call that were last begun and the seconds of the limit.
  using Say = std::function<std::string(const std::string &communicator, const std::string &call, double seconds)>;
  StartLimit(comm::Control &control, Say say);
  ~StartLimit();
  void begin(const std::string &communicator, const std::string &call);

private:
  void loop();

  comm::Control &control;
  Say say;
  double seconds;
  std::mutex mutex;
  std::condition_variable wake;
  bool ended = false;
  std::string communicator, call;
  std::thread thread;
};

} // namespace par::cuda
