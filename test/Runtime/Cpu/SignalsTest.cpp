// Signals during a matmul change none of its bits, and break nothing.
#include "comm/job/Interrupt.h"
#include "comm/shared/Memory.h"
#include "par/cpu/Matmul.h"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

using namespace par;

TEST(Signals, LeaveProductsAlone) {
  comm::Mapping memory = comm::mapPrivate(comm::SharedState::bytesFor(1));
  comm::Interrupt interrupt(*comm::SharedState::make(memory.bytes.data(), 1), -1);
  format::Call call;
  call.name = "product";
  call.m = 192, call.n = call.k = call.lda = call.ldb = call.ldc = 256;
  std::vector<float> a(call.extent('a'), 0.5f), b(call.extent('b'), 0.25f), wanted(call.extent('c')), c = wanted;
  auto product = cpu::makeMatmul(call, {}, "toy");
  product->run(a.data(), b.data(), nullptr, wanted.data(), nullptr);
  std::atomic<bool> done{false};
  // The one signal of Interrupt that may come any number of times. On a busy machine any thread may get a signal of the
  // process, the library's threads too: here each gets its own.
  std::thread sender([&] {
    for (; !done.load(); usleep(100))
      for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task"))
        if (int thread = std::stoi(entry.path().filename().string()); thread != gettid())
          syscall(SYS_tgkill, getpid(), thread, SIGPIPE);
  });
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) {
    product->run(a.data(), b.data(), nullptr, c.data(), nullptr);
    wrong += c != wanted;
  }
  done.store(true);
  sender.join();
  EXPECT_EQ(wrong, 0);
}
