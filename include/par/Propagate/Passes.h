#ifndef PAR_PROPAGATE_PASSES_H
#define PAR_PROPAGATE_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Propagate/Passes.h.inc"

/// The phase: passes and gate.
struct PropagateOptions {
  llvm::SmallVector<std::string> batchAxes; ///< refined axes, major first
};
void buildPropagatePipeline(mlir::OpPassManager &manager, const PropagateOptions &options);

#define GEN_PASS_REGISTRATION
#include "par/Propagate/Passes.h.inc"

} // namespace par

#endif
