// The order of all devices that a policy gives: one trial in the search of the schedule `auto`.
#pragma once

#include "par/Solver/Order/OrderTable.h"

namespace par {

/// How a device chooses among the slots that it could run.
struct DevicePolicy {
  int64_t room = 0;         ///< activations that it may keep, in 1/1000
  unsigned warmup = 1;      ///< forwards before its first backward, at most
  unsigned patience = 5;    ///< tenths of a weight gradient's time that a gap must have so that one starts in it
  bool alternates = false;  ///< a forward goes first after a backward
  bool oldestFirst = false; ///< of several stages, the one with the oldest microbatch; else the deepest one

  bool operator==(const DevicePolicy &) const = default;
};

using OrderPolicy = std::vector<DevicePolicy>; ///< per device

struct GreedyOrder {
  std::vector<DeviceSlots> orders;   ///< per device
  int64_t makespan = 0, longest = 0; ///< ns
  bool complete = false;             ///< otherwise the devices' room does not suffice
};

/// Plays a step in which each device runs, whenever it is free, a backward if one is ready, else a forward if it has
/// room, else a weight gradient if the gap is long enough. Time is that of the problem, so that a table of these
/// orders takes the same.
GreedyOrder orderGreedily(const OrderTableProblem &problem, const OrderPolicy &policy);

} // namespace par
