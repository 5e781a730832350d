#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <optional>

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Partition/Passes.h.inc"

struct PartitionOptions {
  std::string hardware = "cpu";                   ///< the file from which collectives are priced
  std::string accumulate = "f32", reduce = "f32"; ///< or bf16: of gradients over microbatches, and over ranks
  llvm::SmallVector<std::string> parameterAxes;   ///< axes that shard stored parameters
  bool gatherOnce = false;                        ///< gathered once a step, not for each use
  bool mixed = false;                             ///< matmuls are computed in a narrower format than f32
  std::optional<std::string> scatter = {}; ///< transfers are scattered and gathered; the plan's place that says so
};
/// The phase: passes and gate.
void buildPartitionPipeline(mlir::OpPassManager &manager, const PartitionOptions &options = {});
/// `par-opt --par-partition`.
void registerPartitionPipeline();

#define GEN_PASS_REGISTRATION
#include "par/Phases/Partition/Passes.h.inc"

} // namespace par
