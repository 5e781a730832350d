#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Memory/Passes.h.inc"

struct MemoryOptions {
  int64_t limit = 0;                         ///< bytes a rank may use; 0: unlimited
  bool greedy = false;                       ///< no search for a smaller pool
  std::optional<OffloadPassOptions> offload; ///< buffers in host memory; none: no buffers
};
void buildMemoryPipeline(mlir::OpPassManager &manager, const MemoryOptions &options);
/// `par-opt --par-memory`.
void registerMemoryPipeline();

#define GEN_PASS_REGISTRATION
#include "par/Phases/Memory/Passes.h.inc"

} // namespace par
