// The predicted step, and the bubble that is expected of its schedule.
#pragma once

#include "par/Plan/Model/Plan.h"
#include "par/Simulator/Simulator.h"

namespace par {

/// The bubble of a schedule whose stages all take the average time of a simulation's stages.
struct ExpectedBubble {
  std::string schedule;
  int64_t microbatches = 1;
  bool closedForm = false; ///< else that of the schedule's table
  double percent = 0;
};

/// Nothing with one stage.
std::optional<ExpectedBubble> expectBubble(const Plan &plan, const format::Bundle &bundle,
                                           const Simulation &simulation);

/// The time of a step, and the shares of all ranks' time in it.
struct Prediction {
  int64_t stepNs = 0; ///< of one batch
  int64_t computePermille = 0, bubblePermille = 0, communicationPermille = 0, corePermille = 0;
  std::array<int64_t, 3> sourcePermille{}; ///< see Simulation
  int64_t cores = 0;                       ///< of a host, if its ranks share them
  std::optional<ExpectedBubble> expected;
};
Prediction describePrediction(const Plan &plan, const format::Bundle &bundle, const Simulation &simulation);

} // namespace par
