// How ranks on GPUs exchange the contents of buffers: units are put on the streams of their queues.
#pragma once

#include "par/comm/Communicator.h"
#include "par/cuda/Gpu.h"

namespace par::cuda {

class Communicators {
public:
  virtual ~Communicators() = default;
  /// Puts one communication, or an atomic group, on a stream. All ranks post in the program's one order.
  virtual void post(Stream stream, std::span<const comm::Communication> unit) = 0;
  /// Throws what has gone wrong since the last look.
  virtual void poll() {}
  /// Ends everything that is under way, so that streams can be destroyed. Never throws.
  virtual void abort() noexcept {}
  /// "NCCL 2.28.9".
  virtual std::string describe() const = 0;
};

/// Bytes that a rank sends for a communication, times the members (as comm::Endpoint::sentBytes() counts).
uint64_t sentShares(const comm::Communication &communication, uint64_t members, uint64_t self);

} // namespace par::cuda
