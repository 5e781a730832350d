// Standard streams and stacks.
#include "par/format/Process.h"

#include "par/format/OutOfMemory.h"
#include "par/format/PlainFile.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

using namespace par::format;

/// Linux' own default.
static constexpr rlim_t wantedStack = 8 << 20;
/// Kernels may take 64 KiB of a thread's stack; the rest is their callers' and the libraries'.
static constexpr rlim_t minStack = 256 << 10;

/// Threads begin with the stack that the limit allowed when the process began.
static void setStackOfThreads(size_t bytes) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0)
    return;
  if (pthread_attr_setstacksize(&attributes, bytes) == 0)
    pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

Status par::format::prepareProcess() {
  openStandardStreams();
  // A file that may not grow (ulimit -f) is an error of write(), which names the file.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= wantedStack)
    return {};
  rlimit raised = {std::min(wantedStack, limit.rlim_max), limit.rlim_max};
  if (raised.rlim_cur > limit.rlim_cur && setrlimit(RLIMIT_STACK, &raised) == 0) {
    limit = raised;
    setStackOfThreads(limit.rlim_cur);
  }
  if (limit.rlim_cur < minStack)
    return Error{"the stack is limited to " + std::to_string(limit.rlim_cur >> 10) + " KiB, and at least " +
                 std::to_string(minStack >> 10) + " are needed; raise it (ulimit -s " +
                 std::to_string(wantedStack >> 10) + ")"};
  return {};
}

void par::format::requireRoom(size_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw OutOfMemory(bytes);
  munmap(memory, bytes);
}

Status par::format::flushOutput() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return Error{std::string("cannot write: ") + std::strerror(errno ? errno : EIO)};
  return {};
}
