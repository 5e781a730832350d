// 1F1B with a flush (Narayanan et al. 2019, PipeDream-flush): device s warms up with p - 1 - s forwards, then
// alternates. The bubble is GPipe's, but only min(m, p - s) microbatches are in flight.
#include "OneForwardOneBackward.h"
#include <algorithm>

using namespace par;

DeviceSlots par::oneForwardOneBackwardOrder(unsigned device, const ScheduleShape &shape) {
  DeviceSlots slots;
  unsigned warmup = std::min(shape.devices - 1 - device, shape.microbatches);
  for (unsigned i = 0; i < warmup; ++i)
    slots.push_back({SlotKind::Forward, i});
  for (unsigned i = 0; i < shape.microbatches; ++i) {
    if (i + warmup < shape.microbatches)
      slots.push_back({SlotKind::Forward, i + warmup});
    slots.push_back({SlotKind::Backward, i});
  }
  return slots;
}

std::optional<double> par::oneForwardOneBackwardBubble(const ScheduleShape &shape, const SlotTimes &) {
  return (shape.devices - 1.0) / (shape.microbatches + shape.devices - 1.0);
}

namespace par::schedules {
extern const Schedule OneForwardOneBackward;
const Schedule OneForwardOneBackward = {
    .name = "1f1b",
    .summary = "one forward, one backward: bubble (p-1)/(m+p-1), p-s microbatches in flight",
    .order = oneForwardOneBackwardOrder,
    .bubble = oneForwardOneBackwardBubble,
};
} // namespace par::schedules
