// Measures this machine with a bundle's instructions, and gives the text of a hardware file (docs/plan.md).
#pragma once

#include "par/device/Device.h"

#include <optional>

namespace par::calibrate {

/// The largest work that is measured beside the bundle's, to find the largest rates.
struct LargestWork {
  uint64_t copy = 0;  ///< bytes
  int64_t matmul = 0; ///< rows, columns and depth
};
LargestWork largestFor(const std::string &device);

/// The bundle with a matmul of that size, in each format in use, after each program's own calls: the device that
/// measures is made of it.
format::Bundle withReferences(const format::Bundle &bundle, const LargestWork &largest);

/// A bundle of one rank as two that do the same, and a communicator of both.
format::Bundle besideItself(const format::Bundle &bundle);

/// Bytes that a rank's device needs after its arena (DeviceOptions::guardBytes).
uint64_t scratchBytes(const format::Bundle &bundle, uint32_t rank, const LargestWork &largest);

/// Everything that measuring needs. The device is connected and has the tensors' initial values.
struct Setting {
  core::Device &device;
  const format::Bundle &bundle; ///< withReferences()
  std::string folder;           ///< the bundle's, for messages
  comm::Control &control;
  LargestWork largest;
  int threads = 1;                              ///< of a rank
  std::string name;                             ///< of the hardware
  std::function<void(const std::string &)> say; ///< takes a line of progress, on rank 0
};

/// Collective: the file's text on rank 0, empty on others; none where a signal ended the job. Throws core::Failure.
std::optional<std::string> measure(const Setting &setting);

} // namespace par::calibrate
