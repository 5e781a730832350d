// Runs the tiles of one kernel on a few threads. The tiles are fixed by the program, so the number of threads
// never changes a result.
#pragma once

#include "par/kernels/Builtins.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace par::cpu {

class ThreadPool {
public:
  /// `threads` counts the caller: 1 starts none. Throws core::Failure where the system gives fewer.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;
  /// Runs tiles [0, tiles) and returns when all are done; rethrows an exception of one of them.
  void run(kernels::KernelFunction function, void *const *ptr, const uint64_t *imm, uint32_t tiles);

private:
  struct Job {
    kernels::KernelFunction function;
    void *const *ptr;
    const uint64_t *imm;
    uint32_t tiles, parts;
  };
  void work();
  void end();
  void runPart(const Job &job, uint32_t part);

  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake, finished;
  Job job{};
  uint32_t nextPart = 0, partsLeft = 0;
  std::exception_ptr failure;
  bool ending = false;
};

} // namespace par::cpu
