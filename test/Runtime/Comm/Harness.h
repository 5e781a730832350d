// Jobs for the tests of communicators and the control plane: every test body runs on all ranks, as threads
// and as processes. A failed check ends the job with an error, so the test only looks at the exit code.
#pragma once

#include "par/comm/job/Launch.h"

#include <gtest/gtest.h>
#include <sstream>
#include <sys/mman.h>

namespace par::test {

using namespace par::comm;
using format::CollKind;
using format::DType;
using format::Op;
using format::Reduction;

/// Throws with the values in the text unless they are equal.
template <typename A, typename B>
void expectEqual(const A &actual, const B &expected, const std::string &what) {
  if (actual == expected)
    return;
  std::ostringstream text;
  text << what << " is " << +actual << ", expected " << +expected;
  throw std::runtime_error(text.str());
}

inline Launch jobOf(Transport transport, uint32_t world) {
  Launch launch;
  launch.bundle = "test.par";
  launch.bundleRanks = world;
  launch.n = world;
  launch.transport = transport;
  return launch;
}

/// A table with the world, its halves, and the world in reverse order.
inline std::vector<Members> usualTable(uint32_t world) {
  Members all{"all", {}}, low{"half", {}}, high{"half", {}}, reverse{"reverse", {}};
  for (uint32_t rank = 0; rank < world; ++rank) {
    all.ranks.push_back(rank);
    (rank < world / 2 ? low : high).ranks.push_back(rank);
    reverse.ranks.push_back(world - 1 - rank);
  }
  return {all, low, high, reverse};
}

/// Memory that tests and ranks share, whichever way ranks are started.
template <typename T>
struct SharedArray {
  explicit SharedArray(size_t n)
      : bytes(n * sizeof(T)),
        data(static_cast<T *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedArray() { munmap(data, bytes); }
  T &operator[](size_t i) { return data[i]; }
  size_t bytes;
  T *data;
};

/// The job's output on stderr while `body` ran.
inline std::string errorsOf(const std::function<void()> &body) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}

inline std::string transportName(const testing::TestParamInfo<Transport> &info) {
  return info.param == Transport::inproc ? "inproc" : "shm";
}

} // namespace par::test
