#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// In-flight microbatches and residual memory of one program's order.
struct StageSummary {
  std::string stage; ///< "s0", of several "s0+s2"
  /// The most microbatches whose forward on a stage has begun and whose backward there has not ended, all its stages
  /// together; where there is no backward, whose forward has begun.
  int64_t inFlight = 0;
  /// Bytes on one rank of temporary buffers that forward and backward share, all slots: residuals, received
  /// activations.
  int64_t savedBytes = 0;
  /// Bytes on one rank of state, and of all other buffers before Memory packs them.
  int64_t stateBytes = 0, otherBytes = 0;
};

/// Reads the programs of a module between Schedule and Kernels, in the order of stages; `entry` names the
/// entry counted.
llvm::SmallVector<StageSummary> summarizePrograms(mlir::ModuleOp module, llvm::StringRef entry);

} // namespace par
