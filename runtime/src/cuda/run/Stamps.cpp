#include "Stamps.h"

#include <chrono>
#include <cmath>

namespace par::cuda {

void Stamps::begin(size_t count, Stream main) {
  steps = count;
  if (!origin)
    origin = makeEvent(gpu, true);
  while (events.size() < 2 * steps)
    events.push_back(makeEvent(gpu, true));
  record(origin, main);
  gpu->check(gpu->streamSynchronize(main), "cuStreamSynchronize");
  originTime =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<core::Stamp> Stamps::read() const {
  auto time = [&](Event event) {
    float milliseconds = 0;
    gpu->check(gpu->eventElapsed(&milliseconds, origin, event), "cuEventElapsedTime");
    return originTime + std::llround(static_cast<double>(milliseconds) * 1e6);
  };
  std::vector<core::Stamp> times(steps);
  for (size_t i = 0; i < steps; ++i)
    times[i] = {time(events[2 * i]), time(events[2 * i + 1])};
  return times;
}

} // namespace par::cuda
