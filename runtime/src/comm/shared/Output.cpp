// Output that may have no reader.
#include "par/comm/shared/Output.h"
#include "SharedState.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <unistd.h>

using namespace par::comm;

/// Time since the signal; and the minimum for a single piece, as a reader may be slow.
static constexpr int64_t readersTime = 2'000'000'000, minReadersTime = 100'000'000;

// A pipe that can be written takes PIPE_BUF bytes without waiting.
bool par::comm::writeOutput(int descriptor, std::string_view text, int64_t nanoseconds) {
  int64_t began = now();
  while (!text.empty()) {
    pollfd polled{descriptor, POLLOUT, 0};
    int ready = poll(&polled, 1, 50);
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready == 0) {
      int64_t asked = askedToEnd();
      if ((asked && now() > std::max(asked + readersTime, began + minReadersTime)) || now() - began > nanoseconds) {
        errno = ETIMEDOUT;
        return false;
      }
      continue;
    }
    ssize_t n = write(descriptor, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n <= 0)
      return false;
    text.remove_prefix(size_t(n));
  }
  return true;
}

bool par::comm::writeOutput(int descriptor, std::string_view text) { return writeOutput(descriptor, text, INT64_MAX); }
