#pragma once

#include "StepTasks.h"
#include "par/Costs/CostTable.h"

namespace par {

/// One activity on one microbatch, with its time in the simulated step.
struct TaskInstance {
  unsigned task;
  int64_t microbatch;         ///< the i-th of all calls of the step: see Task::instances
  int64_t start = 0, end = 0; ///< ns
};

/// All instances of a step in one order that extends all dependencies; a stage's program is its restriction.
struct StepOrder {
  std::vector<TaskInstance> instances;

  /// Orders the step by the schedule's table and simulated start times with unlimited lanes.
  static mlir::FailureOr<StepOrder> compute(const StepTasks &tasks, llvm::StringRef schedule, const CostTable &costs);
};

/// Predicted ns of one activity on one rank.
int64_t predictTime(const StepTasks &tasks, const Task &task, const CostTable &costs);

} // namespace par
