// Waits for the GPU, and looks meanwhile whether the job ends, whether communicators have failed, and whether
// anything still moves.
#pragma once

#include "par/comm/job/Control.h"
#include "par/cuda/comm/Communicators.h"

#include <deque>

namespace par::cuda {

class Watchdog {
public:
  Watchdog(const Gpu &gpu, comm::Control &control, comm::Endpoint &link);

  /// Marks where a communication ends on its stream, so that one that stands still can be named.
  void mark(Stream stream, const comm::Communication &communication);
  /// Returns when the event has been reached. Throws core::Failure or comm::Aborted.
  void until(Event event, Communicators *communicators, const std::string &place);

private:
  struct Mark {
    Owned<Event> event;
    const char *id = "";
    std::string what;
  };
  /// Forgets the marks that have been reached; true if there were any.
  bool forget();
  void look(Communicators &communicators);
  [[noreturn]] void stalled(double seconds, const std::string &place);

  const Gpu &gpu;
  comm::Control &control;
  comm::Endpoint &link;
  double patience;
  std::deque<Mark> marks;
  std::vector<Owned<Event>> spare;
};

} // namespace par::cuda
