// GPipe (Huang et al. 2019): every forward, a flush, every backward. All microbatches are in flight at the turn.
#include "par/Solver/Schedules/Schedules.h"

using namespace par;

static DeviceSlots gpipeOrder(unsigned, const ScheduleShape &shape) {
  DeviceSlots slots;
  for (unsigned i = 0; i < shape.microbatches; ++i)
    slots.push_back({SlotKind::Forward, i});
  for (unsigned i = 0; i < shape.microbatches; ++i)
    slots.push_back({SlotKind::Backward, i});
  return slots;
}

static std::optional<double> gpipeBubble(const ScheduleShape &shape, const SlotTimes &) {
  return (shape.devices - 1.0) / (shape.microbatches + shape.devices - 1.0);
}

namespace par::schedules {
extern const Schedule GPipe;
const Schedule GPipe = {
    .name = "gpipe",
    .summary = "all forwards, then all backwards: bubble (p-1)/(m+p-1), m microbatches in flight",
    .order = gpipeOrder,
    .bubble = gpipeBubble,
};
} // namespace par::schedules
