#ifndef PAR_SCHEDULE_SCHEDULE_H
#define PAR_SCHEDULE_SCHEDULE_H

#include "par/Dialect/Par.h"

namespace par {

/// What the order of one stage's program keeps.
struct StageSummary {
  std::string stage;
  /// The most microbatches whose forward has begun and whose last block has not ended.
  int64_t inFlight = 0;
  /// Bytes on one rank of the buffers with a slot for each microbatch in flight, all slots; inputs left out.
  int64_t savedBytes = 0;
  /// Bytes on one rank of state, and of all other buffers before Memory packs them.
  int64_t stateBytes = 0, otherBytes = 0;
};

/// Reads the programs of a module after Schedule, in the order of stages; `entry` names the entry counted.
llvm::SmallVector<StageSummary> summarizePrograms(mlir::ModuleOp module, llvm::StringRef entry);

} // namespace par

#endif
