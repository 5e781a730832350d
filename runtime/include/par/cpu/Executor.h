// Walks a flat entry. One thread issues in order and executes the main queue itself; all other queues are in-order
// lists that move forward between its instructions and while it waits.
#pragma once

#include "par/cpu/LocalSteps.h"

namespace par::cpu {

class Executor {
public:
  Executor(uint32_t mainQueue, size_t queues, comm::Endpoint &endpoint, comm::Control &control, LocalSteps &local);

  /// Runs an entry from its first step until every queue has drained.
  void run(const core::ExpandedEntry &entry, core::EntryHost &host);
  /// Stamps of the last run, one for each step.
  const std::vector<core::Stamp> &stamps() const { return times; }
  /// See core::Device, also the next one.
  uint64_t stateWrites() const { return writes; }
  void stampThreadTime(bool only);

private:
  struct Queue {
    std::vector<uint32_t> issued; ///< steps given to this queue, in order
    size_t next = 0;              ///< the first that has not ended
    bool posted = false;          ///< whether issued[next] is a communication under way
    comm::Operation operation;
  };

  int64_t now() const;
  void runNow(uint32_t index);
  bool advanceOthers();
  bool advance(Queue &queue, bool &moved);
  comm::Operation post(const core::Command &step);
  bool othersIdle() const;
  void markSignalled(uint32_t index) { signalled[index] = 1; }

  uint32_t mainQueue;
  int clock; ///< of stamps
  comm::Endpoint &endpoint;
  comm::Control &control;
  LocalSteps &local;
  std::vector<Queue> queues;
  std::vector<core::Stamp> times;
  std::vector<uint8_t> signalled;
  const core::ExpandedEntry *entry = nullptr;
  core::EntryHost *host = nullptr;
  uint64_t writes = 0;
  size_t waiting = 0; ///< steps of other queues that have not ended
};

} // namespace par::cpu
