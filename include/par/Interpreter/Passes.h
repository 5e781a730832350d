#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace par {

#define GEN_PASS_DECL
#include "par/Interpreter/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "par/Interpreter/Passes.h.inc"

} // namespace par
