// Threads that the system does not give are an error, not the end of the process.
#include "par/core/Failure.h"
#include "par/cpu/ThreadPool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(ThreadPool, TooFewThreads) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    // The limit of processes does not hold for root.
    if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0)
      _exit(2);
    rlimit none{1, 1};
    setrlimit(RLIMIT_NPROC, &none);
    try {
      par::cpu::ThreadPool pool(4);
      _exit(3);
    } catch (const par::core::Failure &failure) {
      std::string said = failure.what();
      _exit(write(ends[1], said.data(), said.size()) == ssize_t(said.size()) ? 0 : 4);
    }
  }
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::string said(200, 0);
  said.resize(size_t(std::max<ssize_t>(read(ends[0], said.data(), said.size()), 0)));
  close(ends[0]);
  EXPECT_EQ(said, "error: cannot start thread 2 of 4: Resource temporarily unavailable; give fewer with --threads");
}
