// Communication in the form that the runtime executes.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Phases/Collectives/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "par/Phases/Collectives/Passes.h.inc"

} // namespace par
