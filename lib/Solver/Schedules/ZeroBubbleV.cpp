// ZB-V (Qi et al. 2024, §6): two stages a device in a V, so that a microbatch's forward ends on the device where its
// backward begins, on device 0 as well. Every device keeps at most 2p of these half stages: p microbatches. There is no
// bubble between steps if a forward, an input's and a weight's gradient take equally long.
#include "par/Solver/Schedules/Schedules.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace par;

namespace {

/// Appends the next microbatch's slots. The order is that of at least 2p - 1 microbatches, which fill the pipeline;
/// of fewer, the others are left out.
class VOrder {
public:
  explicit VOrder(unsigned microbatches) : microbatches(microbatches) {}

  void add(SlotKind kind, unsigned chunk) {
    unsigned microbatch = counts[chunk][static_cast<unsigned>(kind)]++;
    if (microbatch < microbatches)
      slots.push_back({kind, microbatch, chunk});
  }
  void forward(unsigned chunk) { add(SlotKind::Forward, chunk); }
  void backward(unsigned chunk) { add(SlotKind::Backward, chunk); }
  void weight(unsigned chunk) { add(SlotKind::Weight, chunk); }
  void wholeBackward(unsigned chunk) {
    backward(chunk);
    weight(chunk);
  }
  unsigned count(SlotKind kind, unsigned chunk) const { return counts[chunk][static_cast<unsigned>(kind)]; }

  DeviceSlots slots;

private:
  unsigned microbatches;
  unsigned counts[2][3] = {};
};

} // namespace

static DeviceSlots zeroBubbleVOrder(unsigned device, const ScheduleShape &shape) {
  unsigned p = shape.devices, m = std::max(2 * p - 1, shape.microbatches);
  VOrder order(shape.microbatches);
  // Fill: forwards of the first stage until the first microbatch returns for the second one, then both alternate.
  for (unsigned i = 0; i < 2 * (p - device) - 1; ++i)
    order.forward(0);
  for (unsigned i = 0; i < device; ++i) {
    order.forward(1);
    order.forward(0);
  }
  for (unsigned i = 0; i < p - device; ++i) {
    order.forward(1);
    order.wholeBackward(1);
  }
  // Each backward makes room for a forward.
  while (order.count(SlotKind::Forward, 1) < m) {
    if (order.count(SlotKind::Forward, 0) < m)
      order.forward(0);
    order.wholeBackward(0);
    order.forward(1);
    order.wholeBackward(1);
  }
  // Drain: slots that other devices wait for come first, weight gradients as late as possible.
  for (unsigned i = 0; i < device; ++i) {
    order.backward(0);
    order.backward(1);
  }
  for (unsigned i = 0; i < p - device; ++i) {
    order.backward(0);
    order.weight(0);
  }
  for (unsigned chunk : {1u, 0u})
    while (order.count(SlotKind::Weight, chunk) < m)
      order.weight(chunk);
  return order.slots;
}

namespace par::schedules {
extern const Schedule ZeroBubbleV;
const Schedule ZeroBubbleV = {
    .name = "zb-v",
    .summary = "two stages a device in a V, weight gradients apart: p microbatches in flight on all devices",
    .order = zeroBubbleVOrder,
    .weightsApart = true,
    .minChunks = 2,
    .maxChunks = 2,
    .placement = Placement::V,
};
} // namespace par::schedules
