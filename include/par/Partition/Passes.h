#ifndef PAR_PARTITION_PASSES_H
#define PAR_PARTITION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Partition/Passes.h.inc"

/// The phase: pass and gate. `hardware` names the file from which collectives are priced.
void buildPartitionPipeline(mlir::OpPassManager &manager, llvm::StringRef hardware = "cpu");

#define GEN_PASS_REGISTRATION
#include "par/Partition/Passes.h.inc"

} // namespace par

#endif
