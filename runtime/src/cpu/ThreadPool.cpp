#include "par/cpu/ThreadPool.h"

#include "par/comm/shared/SignalStack.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

namespace par::cpu {

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < threads; ++i)
    try {
      workers.emplace_back([this] { work(); });
    } catch (const std::system_error &error) {
      end();
      throw core::Failure::at("", core::Message::noThread, i + 1, threads, error.code().message());
    }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() {
  {
    std::lock_guard lock(mutex);
    ending = true;
  }
  wake.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::runPart(const Job &job, uint32_t part) {
  uint32_t begin = uint64_t(job.tiles) * part / job.parts, end = uint64_t(job.tiles) * (part + 1) / job.parts;
  try {
    job.function(job.ptr, job.imm, begin, end);
  } catch (...) {
    std::lock_guard lock(mutex);
    failure = std::current_exception();
  }
}

void ThreadPool::run(kernels::KernelFunction function, void *const *ptr, const uint64_t *imm, uint32_t tiles) {
  if (workers.empty() || tiles < 2) {
    function(ptr, imm, 0, tiles);
    return;
  }
  std::unique_lock lock(mutex);
  // A few parts a thread, so that one that is late does not hold up the others.
  auto parts = std::min<uint32_t>(tiles, 4 * (static_cast<uint32_t>(workers.size()) + 1));
  job = {function, ptr, imm, tiles, parts};
  nextPart = 0;
  partsLeft = parts;
  wake.notify_all();
  while (nextPart < parts) {
    uint32_t part = nextPart++;
    lock.unlock();
    runPart(job, part);
    lock.lock();
    --partsLeft;
  }
  finished.wait(lock, [this] { return partsLeft == 0; });
  if (failure)
    std::rethrow_exception(std::exchange(failure, nullptr));
}

void ThreadPool::work() {
  comm::useSignalStack();
  std::unique_lock lock(mutex);
  while (true) {
    wake.wait(lock, [this] { return ending || nextPart < job.parts; });
    if (ending)
      return;
    Job mine = job;
    uint32_t part = nextPart++;
    lock.unlock();
    runPart(mine, part);
    lock.lock();
    if (--partsLeft == 0)
      finished.notify_one();
  }
}

} // namespace par::cpu
