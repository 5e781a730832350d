// Entries that no program has, put together for measuring.
#pragma once

#include "par/device/Loader.h"

#include <deque>

namespace par::calibrate {

/// Steps in one queue, with the instructions that a device asks for.
class MadeEntry {
public:
  MadeEntry(const std::string &name, std::span<const format::Run> runs) {
    entry.name = name;
    entry.runs = runs;
  }
  MadeEntry(const MadeEntry &) = delete;

  /// A step of another entry, of local work, in this queue.
  void add(const core::Command &step, const core::ExpandedEntry &from, uint32_t queue);
  void copy(void *to, const void *from, uint64_t bytes, uint32_t queue);
  void zero(void *at, format::DType type, uint64_t bytes, uint32_t queue);
  void call(uint32_t call, std::vector<void *> operands, uint32_t queue);
  void communicate(const comm::Communication &communication, uint32_t queue);

  const core::ExpandedEntry &expanded() const { return entry; }
  size_t size() const { return entry.steps.size(); }

private:
  core::Command &make(format::Op op, uint32_t queue);

  core::ExpandedEntry entry;
  std::deque<format::Instruction> instructions;
};

/// The queue `compute`, or the first.
uint32_t computeQueue(const format::Program &program);

/// Bytes of a communication's operands, of a group of so many.
struct CommunicationBytes {
  uint64_t in = 0, out = 0;
};
CommunicationBytes bytesOf(const comm::Communication &communication, uint64_t members);

/// The local work of an entry in its order, of one rank: each received value is a copy of random numbers, or
/// zeros where it holds integers; signals and waits are left out. `random` holds as many bytes as the largest.
/// `sources[i]` is the step of `whole` that step i is, or -1.
struct LocalEntry {
  LocalEntry(const core::ExpandedEntry &whole, std::span<const comm::Members> table, const std::byte *random,
             uint32_t queue);

  MadeEntry made;
  std::vector<int64_t> sources;

private:
  void replace(const comm::Communication &communication, uint64_t members, const std::byte *random, uint32_t queue);
};

} // namespace par::calibrate
