// The order and the bubble of 1F1B, which PipeDream's schedules have too, over the microbatches of several batches.
#pragma once

#include "par/Solver/Schedules/Schedules.h"

namespace par {
DeviceSlots oneForwardOneBackwardOrder(unsigned device, const ScheduleShape &shape);
std::optional<double> oneForwardOneBackwardBubble(const ScheduleShape &shape, const SlotTimes &times);
} // namespace par
