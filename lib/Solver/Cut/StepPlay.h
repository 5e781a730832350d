// A step of a pipeline in time, by the schedule's order.
#pragma once

#include "par/Solver/Cut/StageCut.h"
#include "par/Solver/Order/OrderTable.h"

namespace par {

/// One stage's times, and those of what comes to it.
struct StageTimes {
  CutWork work;
  int64_t link = 0; ///< ns per microbatch of the transfers into the stage, one way
};

/// The orders of all devices under a problem's schedule, to be played with the times of any cut.
class StepPlay {
public:
  static llvm::Expected<StepPlay> make(const StageCutProblem &problem);

  /// ns from the first slot to the end of the last update.
  int64_t run(llvm::ArrayRef<StageTimes> times) const;
  /// Number of slots that one run plays.
  size_t slots() const;
  /// Weight gradients have slots of their own.
  bool weightsApart() const { return apart; }
  unsigned deviceOf(unsigned stage) const { return table.deviceOf(stage); }

private:
  struct State;
  bool step(State &state, unsigned device, llvm::ArrayRef<StageTimes> times) const;
  int64_t send(State &state, unsigned from, unsigned to, int64_t ended, int64_t link) const;

  OrderTableProblem table; ///< the schedule with the microbatches that are played
  std::vector<DeviceSlots> orders;
  int64_t left = 0; ///< microbatches beyond those
  bool apart = false, blocking = false;
};

} // namespace par
