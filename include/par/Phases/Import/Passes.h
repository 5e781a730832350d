#pragma once

#include "par/Dialect/Par.h"

#include "mlir/Pass/Pass.h"

namespace par {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "par/Phases/Import/Passes.h.inc"

/// The passes after the reading of the file: carried state, unfolding, and the gate.
void buildImportPipeline(mlir::OpPassManager &manager, const CarryStatePassOptions &carry = {});
/// `par-opt --par-import`.
void registerImportPipeline();

} // namespace par
