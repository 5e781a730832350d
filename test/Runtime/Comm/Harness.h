// Jobs for the tests of communicators and the control plane: every test body runs on all ranks, as threads
// and as processes. A failed check ends the job with an error, so the test only looks at the exit code.
#pragma once

#include "Rendezvous.h"
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

/// Ranks as processes of three hosts, which they find by the job's rendezvous; the largest exit code. The hosts are
/// this one by three names, so that nothing is shared between ranks of different ones.
inline int runOnHosts(const Launch &local, const std::function<int(Control &)> &rankMain) {
  Launch launch = local;
  launch.n.reset();
  launch.world = local.n;
  launch.master = "127.0.0.1:" + std::to_string(unusedPort());
  std::vector<pid_t> children;
  for (uint32_t rank = 0; rank < *local.n; ++rank) {
    children.push_back(fork());
    if (children.back() != 0)
      continue;
    setenv("PAR_HOST", ("host" + std::to_string(rank % 3)).c_str(), 1);
    launch.rank = rank;
    _exit(run(launch, rankMain));
  }
  int code = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    code = std::max(code, WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
  }
  return code;
}

/// The job's exit code, however its ranks are started.
inline int runJob(const Launch &launch, const std::function<int(Control &)> &rankMain) {
  return launch.transport == Transport::tcp ? runOnHosts(launch, rankMain) : run(launch, rankMain);
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

/// The lines of a text, each once: on several hosts, and before the first step, more than one process says why a job
/// ends.
inline std::string distinctLines(const std::string &text) {
  std::istringstream in(text);
  std::string result;
  for (std::string line; std::getline(in, line);)
    if (result.find(line + "\n") == std::string::npos)
      result += line + "\n";
  return result;
}

inline std::string transportName(const testing::TestParamInfo<Transport> &info) {
  return info.param == Transport::inproc ? "inproc" : info.param == Transport::shm ? "shm" : "tcp";
}

} // namespace par::test
