// When the steps of a run began and ended on their streams.
#pragma once

#include "par/cuda/driver/Gpu.h"
#include "par/device/Device.h"

namespace par::cuda {

class Stamps {
public:
  explicit Stamps(const Gpu &gpu) : gpu(gpu) {}

  /// Before a run of so many steps: the GPU's clock is held against the host's when `main` has drained.
  void begin(size_t steps, Stream main);
  /// Around the work of a step.
  void before(uint32_t step, Stream stream) { record(events[2 * step], stream); }
  void after(uint32_t step, Stream stream) { record(events[2 * step + 1], stream); }
  /// Once all streams have drained: nanoseconds of the monotonic clock, those of a queue in its order.
  std::vector<core::Stamp> read() const;

private:
  void record(Event event, Stream stream) const { gpu->check(gpu->eventRecord(event, stream), "cuEventRecord"); }

  const Gpu &gpu;
  Owned<Event> origin;
  int64_t originTime = 0;
  std::vector<Owned<Event>> events; ///< two a step
  size_t steps = 0;
};

} // namespace par::cuda
