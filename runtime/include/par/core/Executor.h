// Walks a flat entry. One thread issues in order and executes the main queue itself; all other queues are in-order
// lists that move forward between its instructions and while it waits.
#pragma once

#include "par/comm/Control.h"
#include "par/core/Loader.h"
#include "par/cpu/ThreadPool.h"

namespace par::core {

/// Where an entry's inputs come from and its results go.
class EntryHost {
public:
  virtual ~EntryHost();
  /// Writes this rank's part of an input for one microbatch: a dense array of the input's local shape.
  virtual void feed(const format::Input &input, int64_t microbatch, std::span<std::byte> to) = 0;
  /// Takes a result.
  virtual void fetch(const format::Output &output, int64_t microbatch, format::DType type,
                     std::span<const std::byte> from) = 0;
};

/// When a step ran, nanoseconds of the monotonic clock.
struct Stamp {
  int64_t begin = 0, end = 0;
};

class Executor {
public:
  Executor(uint32_t mainQueue, size_t queues, comm::Endpoint &endpoint, comm::Control &control, cpu::ThreadPool &pool);

  /// Runs an entry from its first step until every queue has drained.
  void run(const ExpandedEntry &entry, EntryHost &host);
  /// Of the last run, one for each step.
  const std::vector<Stamp> &stamps() const { return times; }

private:
  struct Queue {
    std::vector<uint32_t> issued; ///< steps given to this queue, in order
    size_t next = 0;              ///< the first that has not ended
    bool posted = false;          ///< whether issued[next] is a communication under way
    comm::Operation operation;
  };

  void runNow(uint32_t index);
  void executeLocal(const Step &step);
  void runCall(const Step &step);
  bool advanceOthers();
  bool advance(Queue &queue, bool &moved);
  comm::Operation post(const Step &step);
  bool othersIdle() const;
  void markSignalled(uint32_t index) { signalled[index] = 1; }

  uint32_t mainQueue;
  comm::Endpoint &endpoint;
  comm::Control &control;
  cpu::ThreadPool &pool;
  std::vector<Queue> queues;
  std::vector<Stamp> times;
  std::vector<uint8_t> signalled;
  const ExpandedEntry *entry = nullptr;
  EntryHost *host = nullptr;
  size_t waiting = 0; ///< steps of other queues that have not ended
};

} // namespace par::core
