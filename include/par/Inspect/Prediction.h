// The predicted step, and the bubble that is expected of its schedule.
#pragma once

#include "par/Compiler/Compiler.h"
#include "par/Costs/CostTable.h"
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

/// How much of the ranks' peak the model's operations of a step are (MFU).
struct Utilization {
  double flops = 0;         ///< of a step, on all ranks: see modelFlops
  double perSecond = 0;     ///< of a rank
  double peakPerSecond = 0; ///< of a rank, in matmuls, by the hardware file
  std::string type;         ///< "bf16"
  std::string hardware;     ///< name of the file
  double percent() const { return 100 * perSecond / peakPerSecond; }
};
/// Nothing of a model without matmuls.
std::optional<Utilization> describeUtilization(const Compiled &compiled, int64_t stepNs);

/// The part of all ranks' time, in 1/1000, in which instructions are issued and kernels start: of compute.
int64_t launchPermille(const Simulation &simulation, const CostTable &costs);

/// How many times faster matmuls are in bf16, of a plan for GPUs that says no precision; else nothing.
std::optional<double> gainOfBf16(const PlannedModel &planned);

} // namespace par
