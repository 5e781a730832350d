#include "ContentCheck.h"

#include <csignal>
#include <system_error>

namespace par::core {

void ContentCheck::start() {
  if (outcome.valid())
    return;
  sigset_t all, before;
  sigfillset(&all); // a signal is for the threads that know what to do with it
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    outcome = std::async(std::launch::async, compare).share();
  } catch (const std::system_error &) { // no thread is to be had: finish() compares
    outcome = std::async(std::launch::deferred, compare).share();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ContentCheck::finish() {
  start();
  outcome.get();
}

} // namespace par::core
