// PipeDream (Narayanan et al. 2019): 1F1B without a flush. Every batch updates. Stage s computes with weights p - 1 - s
// updates old, which its device has when the batch's forward arrives, and keeps them for its backward. The order is
// 1F1B's over all batches between two flushes. A backward sends the input's gradient before it computes the weights'
// gradient, as zero-bubble schedules do: neither fill nor drain then waits for weight gradients. These are not moved
// further back, since the next forward reads the updated weights.
#include "OneForwardOneBackward.h"

using namespace par;

static DeviceSlots pipeDreamOrder(unsigned device, const ScheduleShape &shape) {
  DeviceSlots slots;
  for (const ScheduleSlot &slot : oneForwardOneBackwardOrder(device, shape)) {
    slots.push_back(slot);
    if (slot.kind == SlotKind::Backward)
      slots.push_back({SlotKind::Weight, slot.microbatch});
  }
  return slots;
}

/// No order has less: the last device updates between two of its batches, and the first forward and the last backward
/// pass all others beside that. In units of times: (p-1)(F+B) beside K (F+B+W).
static std::optional<double> pipeDreamBubble(const ScheduleShape &shape, const SlotTimes &times) {
  double through = double(times.forward) + times.backward, step = through + times.weight;
  if (step <= 0)
    return std::nullopt;
  double idle = (shape.devices - 1.0) * through;
  return idle / (shape.microbatches * step + idle);
}

static unsigned pipeDreamBehind(unsigned stage, unsigned stages) { return stages - 1 - stage; }

namespace par::schedules {
extern const Schedule PipeDream;
const Schedule PipeDream = {
    .name = "pipedream",
    .summary = "asynchronous: every batch updates, stage s uses weights p-1-s updates old and keeps a version for each",
    .order = pipeDreamOrder,
    .bubble = pipeDreamBubble,
    .weightsApart = true,
    .behind = pipeDreamBehind,
    .maxMicrobatches = 1,
};
} // namespace par::schedules
