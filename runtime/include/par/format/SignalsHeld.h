// Threads that a library starts get no signals.
#pragma once

#include <array>
#include <csignal>

extern "C" int omp_get_max_threads() __attribute__((weak));

namespace par::format {

/// That ask a job to end.
inline constexpr std::array<int, 3> endingSignals = {SIGINT, SIGTERM, SIGHUP};

/// Blocks signals while a library computes that may start threads (oneDNN's by OpenMP): these inherit the caller's mask
/// for good. Handlers must not run on them: matmuls keep values far below their stack pointer, and these threads have
/// no signal stack of their own, as comm::useSignalStack() gives to ours. A signal that comes meanwhile goes to another
/// thread, or waits for the end of the matmul. If the library has one thread nothing is blocked.
class SignalsHeld {
public:
  SignalsHeld() : holds(!omp_get_max_threads || omp_get_max_threads() > 1) {
    if (!holds)
      return;
    sigset_t handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGPIPE);
    for (int signal : endingSignals)
      sigaddset(&handled, signal);
    pthread_sigmask(SIG_BLOCK, &handled, &before);
  }
  ~SignalsHeld() {
    if (holds)
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  SignalsHeld(const SignalsHeld &) = delete;
  SignalsHeld &operator=(const SignalsHeld &) = delete;

private:
  bool holds;
  sigset_t before;
};

} // namespace par::format
