// How ranks on GPUs exchange the contents of buffers: units are put on the streams of their queues.
#pragma once

#include "par/comm/job/Control.h"
#include "par/cuda/driver/Kernels.h"

#include <functional>

namespace par::cuda {

class Communicators {
public:
  virtual ~Communicators() = default;
  /// Puts one communication, or an atomic group, on a stream. All ranks post in the program's one order.
  virtual void post(Stream stream, std::span<const comm::Communication> unit) = 0;
  /// Throws an error that has occurred since the last check.
  virtual void poll() {}
  /// Ends everything that is under way, so that streams can be destroyed. Never throws.
  virtual void abort() noexcept {}
  /// "NCCL 2.28.9".
  virtual std::string describe() const = 0;
  /// Doubts about how the ranks were joined, for the user; "" mostly.
  virtual std::string remark() const { return ""; }
};

/// Inputs from which communicators are made.
struct CommunicatorsOf {
  const Gpu &gpu;
  const core::DeviceOptions &options;
  comm::Control &control;
  comm::Endpoint &link; ///< its poll() hears that the job ends
};

/// Over NCCL, 2.26 or later: one process and GPU a rank. Collective. `stream` is one to make connections on.
std::unique_ptr<Communicators> makeNccl(const CommunicatorsOf &of, Stream stream);
/// Ranks that are threads of this process and share a GPU: copies, and the reductions of the builtin kernels.
/// Collective.
std::unique_ptr<Communicators> makeShared(const CommunicatorsOf &of, Kernels &kernels);

} // namespace par::cuda
