// ZB-H1 (Qi et al. 2024, §2.2): 1F1B whose backward sends the input's gradient before it computes the weights'
// gradient. Device s runs the weight gradient of a microbatch s backwards later, so that no device keeps more than p
// microbatches; the late weight gradients fill the drain.
#include "par/Solver/Schedules/Schedules.h"
#include <algorithm>

using namespace par;

static DeviceSlots zeroBubbleH1Order(unsigned device, const ScheduleShape &shape) {
  DeviceSlots slots;
  unsigned m = shape.microbatches, weights = 0;
  unsigned warmup = std::min(shape.devices - 1 - device, m);
  for (unsigned i = 0; i < warmup; ++i)
    slots.push_back({SlotKind::Forward, i});
  for (unsigned i = 0; i < m; ++i) {
    if (i + warmup < m)
      slots.push_back({SlotKind::Forward, i + warmup});
    slots.push_back({SlotKind::Backward, i});
    if (i >= device)
      slots.push_back({SlotKind::Weight, weights++});
  }
  while (weights < m)
    slots.push_back({SlotKind::Weight, weights++});
  return slots;
}

/// The paper's Table 2, for full pipelines in which weight gradients do not take longest.
static std::optional<double> zeroBubbleH1Bubble(const ScheduleShape &shape, const SlotTimes &times) {
  double p = shape.devices, m = shape.microbatches;
  double step = double(times.forward) + times.backward + times.weight;
  double idle = (p - 1) * (double(times.forward) + times.backward - times.weight);
  if (m < p || times.weight > times.backward || times.weight > times.forward || step <= 0)
    return std::nullopt;
  return idle / (m * step + idle);
}

namespace par::schedules {
extern const Schedule ZeroBubbleH1;
const Schedule ZeroBubbleH1 = {
    .name = "zb-h1",
    .summary = "1f1b with weight gradients later: a third of its bubble, its microbatches in flight",
    .order = zeroBubbleH1Order,
    .bubble = zeroBubbleH1Bubble,
    .weightsApart = true,
};
} // namespace par::schedules
