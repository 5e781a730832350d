// PipeDream (Narayanan et al. 2019): 1F1B without a flush. Every batch updates; stage s computes with the weights of
// p - 1 - s updates ago, which are those that its device has when the batch's forward comes, and keeps them for its
// backward. The order is 1F1B's over all batches between two flushes.
#include "par/Solver/Schedules.h"

using namespace par;

namespace par::schedules {
extern const Schedule OneForwardOneBackward;
} // namespace par::schedules

static DeviceSlots pipeDreamOrder(unsigned device, const ScheduleShape &shape) {
  return schedules::OneForwardOneBackward.order(device, shape);
}

static std::optional<double> pipeDreamBubble(const ScheduleShape &shape, const SlotTimes &times) {
  return schedules::OneForwardOneBackward.bubble(shape, times);
}

static unsigned pipeDreamBehind(unsigned stage, unsigned stages) { return stages - 1 - stage; }

namespace par::schedules {
extern const Schedule PipeDream;
const Schedule PipeDream = {
    .name = "pipedream",
    .summary = "asynchronous: every batch updates, stage s is p-1-s updates behind; one version of the weights for each",
    .order = pipeDreamOrder,
    .bubble = pipeDreamBubble,
    .behind = pipeDreamBehind,
    .mostMicrobatches = 1,
};
} // namespace par::schedules
