// Threads that the system does not give are an error, not the end of the process.
#include "par/cpu/ThreadPool.h"
#include "par/messages/Failure.h"

#include <gtest/gtest.h>
#include <stdexcept>
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

static void refuseTheThird(void *const *ptr, const uint64_t *, uint32_t tile0, uint32_t tile1) {
  for (uint32_t tile = tile0; tile < tile1; ++tile)
    if (tile == 3 && *static_cast<bool *>(ptr[0]))
      throw std::runtime_error("tile 3");
}

TEST(ThreadPool, ThrowsWhatATileThrew) {
  bool refuses = true;
  void *operands[] = {&refuses};
  for (int threads : {1, 3}) {
    par::cpu::ThreadPool pool(threads);
    refuses = true;
    for (int turn = 0; turn < 20; ++turn)
      EXPECT_THROW(pool.run(refuseTheThird, operands, nullptr, 64), std::runtime_error);
    refuses = false;
    EXPECT_NO_THROW(pool.run(refuseTheThird, operands, nullptr, 64));
  }
}
