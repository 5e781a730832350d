#include "StartLimit.h"

#include "comm/shared/Threads.h"
#include "par/messages/Failure.h"

#include <chrono>
#include <cstdlib>

namespace par::cuda {

namespace {

double limitOf() {
  const char *text = std::getenv("PAR_NCCL_START");
  double seconds = text ? std::atof(text) : 0;
  return seconds > 0 ? seconds : 120;
}

} // namespace

StartLimit::StartLimit(comm::Control &control, Say say)
    : control(control), say(std::move(say)), seconds(limitOf()), thread(comm::startThread([this] { loop(); })) {}

StartLimit::~StartLimit() {
  {
    std::lock_guard held(mutex);
    ended = true;
  }
  wake.notify_all();
  thread.join();
}

void StartLimit::begin(const std::string &newCommunicator, const std::string &newCall) {
  std::lock_guard held(mutex);
  communicator = newCommunicator;
  call = newCall;
}

void StartLimit::loop() {
  std::unique_lock held(mutex);
  if (wake.wait_for(held, std::chrono::duration<double>(seconds), [this] { return ended; }))
    return;
  try {
    control.fail(core::exitDeadRank, say(communicator, call, seconds));
  } catch (const comm::Aborted &) {
    // The rank's own thread hears of it at its next poll, or the heartbeat ends the process.
  }
}

} // namespace par::cuda
