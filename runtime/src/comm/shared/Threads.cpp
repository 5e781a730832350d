// Threads that cannot be started say why.
#include "Threads.h"
#include "par/messages/CommMessages.h"

#include <pthread.h>
#include <stdexcept>
#include <system_error>

using namespace par::comm;

/// Default stack size of a thread; a limit of address space is met by it first.
static size_t stackOfThreads() {
  pthread_attr_t attributes;
  size_t bytes = 0;
  if (pthread_getattr_default_np(&attributes) != 0)
    return 0;
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes;
}

std::thread par::comm::startThread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error &error) {
    throw std::runtime_error(say(Sentence::cannotStartThread, stackOfThreads(), error.code().message()));
  }
}
