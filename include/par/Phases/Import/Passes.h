#pragma once

#include "par/Dialect/Par.h"

#include "mlir/Pass/Pass.h"

namespace par {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "par/Phases/Import/Passes.h.inc"

/// What follows the reading of the file: what is carried from call to call, unfolding, and the gate.
void buildImportPipeline(mlir::OpPassManager &manager, const CarryStatePassOptions &carry = {});
/// `par-opt --par-import`.
void registerImportPipeline();

} // namespace par
