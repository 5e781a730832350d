// Loops over elements, and copies between a device and its host's memory.
#include "Rates.h"
#include "par/Costs/CostTable.h"

using namespace par;

Cost CostTable::kernel(int64_t bytes, int64_t flops) const { return local(flops, bytes); }

int64_t CostTable::operations(int64_t flops) const { return nanoseconds(flops, machine.f32); }

Cost CostTable::hostCopy(int64_t bytes) const {
  return machine.host ? Cost{machine.launch + nanoseconds(bytes, machine.host)} : copy(2 * bytes);
}
