// GPipe (Huang et al. 2019): every forward, a flush, every backward. All microbatches are in flight at the
// turn.
#include "par/Solver/Schedules.h"

using namespace par;

std::vector<ScheduleSlot> par::gpipeOrder(unsigned stage, unsigned stages, unsigned microbatches) {
  std::vector<ScheduleSlot> slots;
  for (unsigned i = 0; i < microbatches; ++i)
    slots.push_back({SlotKind::Forward, i});
  for (unsigned i = 0; i < microbatches; ++i)
    slots.push_back({SlotKind::Backward, i});
  return slots;
}
