#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// The memory that a stage's forward saves for its backward.
struct StageResiduals {
  std::string stage;
  /// Bytes on one rank for one microbatch: results of the forward that the backward takes; arguments that both
  /// take (the stage's input, parameters) left out.
  int64_t savedBytes = 0;
  /// The most microbatches in flight under the schedule.
  int64_t inFlight = 1;
};

/// Reads the (forward, backward) pairs of a module of local fragments, in the order of stages. Empty if no
/// step has a backward. `schedule` is one of par/Solver/Schedules/Schedules.h; an unknown one counts one in flight.
llvm::SmallVector<StageResiduals> summarizeResiduals(mlir::ModuleOp module, llvm::StringRef schedule);

} // namespace par
