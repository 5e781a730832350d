// Interleaved 1F1B (Narayanan et al. 2021): v stages a device, dealt round robin, each a v-th of the work, so that the
// fill and drain of the pipeline take a v-th of the time. Microbatches pass in rounds: a round passes the first stages
// of all devices, then the second ones, and so on. Device s warms up with (v - 1) rounds and 2 (p - 1 - s) forwards.
//
// Megatron-LM's rounds are p microbatches, and a last round of fewer stalls the pipeline between its stages (or, from
// some sizes on, for ever). Here the rest joins the last full round: any m >= p has the closed form's bubble.
#include "par/Solver/Schedules/Schedules.h"
#include <algorithm>

using namespace par;

/// The sizes of the rounds: p each, the last one with the rest.
static std::vector<unsigned> interleavedRounds(const ScheduleShape &shape) {
  unsigned full = shape.microbatches / shape.devices;
  if (full == 0)
    return {shape.microbatches};
  std::vector<unsigned> rounds(full, shape.devices);
  rounds.back() += shape.microbatches % shape.devices;
  return rounds;
}

/// All slots of one kind in the order in which every device runs them: forwards pass the chunks in order, backwards in
/// reverse.
static DeviceSlots interleavedSlots(SlotKind kind, const ScheduleShape &shape) {
  DeviceSlots slots;
  unsigned first = 0;
  for (unsigned size : interleavedRounds(shape)) {
    for (unsigned chunk = 0; chunk < shape.chunks; ++chunk)
      for (unsigned i = first; i < first + size; ++i)
        slots.push_back({kind, i, kind == SlotKind::Forward ? chunk : shape.chunks - 1 - chunk});
    first += size;
  }
  return slots;
}

static DeviceSlots interleavedOrder(unsigned device, const ScheduleShape &shape) {
  DeviceSlots forwards = interleavedSlots(SlotKind::Forward, shape);
  DeviceSlots backwards = interleavedSlots(SlotKind::Backward, shape), slots;
  unsigned round = interleavedRounds(shape).back();
  size_t warmup = std::min<size_t>(2 * (shape.devices - 1 - device) + (shape.chunks - 1) * round, forwards.size());
  slots.assign(forwards.begin(), forwards.begin() + warmup);
  for (size_t i = 0; i < backwards.size(); ++i) {
    if (i + warmup < forwards.size())
      slots.push_back(forwards[i + warmup]);
    slots.push_back(backwards[i]);
  }
  return slots;
}

/// In units of one stage's forward and backward; v m of them are work. With m < p a microbatch passes all stages
/// without waiting for another.
static std::optional<double> interleavedBubble(const ScheduleShape &shape, const SlotTimes &) {
  double p = shape.devices, v = shape.chunks, m = shape.microbatches;
  double all = std::max(v * m + p - 1, v * p + m - 1);
  return (all - v * m) / all;
}

namespace par::schedules {
extern const Schedule Interleaved;
const Schedule Interleaved = {
    .name = "interleaved",
    .summary = "1f1b with v stages a device, round robin: bubble (p-1)/(vm+p-1)",
    .order = interleavedOrder,
    .bubble = interleavedBubble,
    .minChunks = 2,
    .maxChunks = ~0u,
};
} // namespace par::schedules
