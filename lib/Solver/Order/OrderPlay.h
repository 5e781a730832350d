// Simulation of the orders of all devices: times and live activations.
#pragma once

#include "par/Solver/Order/OrderTable.h"

namespace par {

/// Start and end of every slot when each device runs its slots in order, one at a time, and a message takes the link's
/// time; -1 where not reached.
class OrderPlay {
public:
  OrderPlay(const OrderTableProblem &problem, llvm::ArrayRef<DeviceSlots> orders, bool apart);
  /// Runs slots until none can run; true if every slot of every device ran.
  bool run();
  /// The first device that waits for ever, and the number of its slot.
  std::pair<unsigned, unsigned> stuck() const;

  std::vector<int64_t> &startsOf(unsigned device) { return starts[device]; }

private:
  bool step(unsigned device);
  int64_t &end(SlotKind kind, unsigned stage, unsigned microbatch) {
    return ends[(3 * stage + static_cast<unsigned>(kind)) * problem.microbatches + microbatch];
  }

  const OrderTableProblem &problem;
  llvm::ArrayRef<DeviceSlots> orders;
  const bool apart;
  std::vector<unsigned> next;
  std::vector<int64_t> free, ends;
  std::vector<std::vector<int64_t>> starts;
};

/// Fills the counts that follow from a device's own slots: in flight, pending, kept.
void countLives(const OrderTableProblem &problem, bool apart, DeviceOrder &order);

/// Sets `last` on the slots that complete the gradients of a stage, and clears it elsewhere.
void markLast(DeviceSlots &slots, bool apart);

/// Whether there are slots of weight gradients.
bool hasWeights(llvm::ArrayRef<DeviceSlots> orders);

/// Checks the order of one device without regard to the others.
llvm::Error checkDevice(const OrderTableProblem &problem, bool apart, unsigned device,
                        llvm::ArrayRef<ScheduleSlot> slots);

} // namespace par
