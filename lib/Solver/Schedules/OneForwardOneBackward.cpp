// 1F1B with a flush (Narayanan et al. 2019, PipeDream-flush): stage s warms up with p - 1 - s forwards, then
// alternates. The bubble is GPipe's, (p - 1) / (m + p - 1), but only min(m, p - s) microbatches are in
// flight.
#include "par/Solver/Schedules.h"
#include <algorithm>

using namespace par;

std::vector<ScheduleSlot> par::oneForwardOneBackwardOrder(unsigned stage, unsigned stages,
                                                          unsigned microbatches) {
  std::vector<ScheduleSlot> slots;
  unsigned warmup = std::min(stages - 1 - stage, microbatches);
  for (unsigned i = 0; i < warmup; ++i)
    slots.push_back({SlotKind::Forward, i});
  for (unsigned i = 0; i < microbatches; ++i) {
    if (i + warmup < microbatches)
      slots.push_back({SlotKind::Forward, i + warmup});
    slots.push_back({SlotKind::Backward, i});
  }
  return slots;
}
