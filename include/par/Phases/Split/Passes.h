#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Split/Passes.h.inc"

/// Attribute of a step, made by -par-move-batch-first: outputs that the model has with the batch in another dim than 0.
inline constexpr llvm::StringLiteral outputBatchDims = "par.output_batch_dims";

/// The phase: passes and gate.
struct SplitOptions {
  int64_t microbatches = 1;
  int64_t keptBytes = 0; ///< maximum of a stage's values computed once a step, before sharding; 0: no limit
  /// Minimum elements of parameters that are always rounded before the loop, since no rank has them whole in f32. None:
  /// they are lifted as other values.
  std::optional<int64_t> masters;
  /// Asynchronous schedules: staleness of each stage's parameters, in updates, and the number of batches between two
  /// flushes.
  std::vector<int64_t> behind;
  int64_t calls = 1;
};
void buildSplitPipeline(mlir::OpPassManager &manager, const SplitOptions &options);
/// `par-opt --par-split`.
void registerSplitPipeline();

#define GEN_PASS_REGISTRATION
#include "par/Phases/Split/Passes.h.inc"

} // namespace par
