// Facts of a bundle that the programs do not have: of the plan, the model's file and the module.
#pragma once

#include "par/Compiler/Compiler.h"

namespace par {

StepFacts collectFacts(mlir::ModuleOp module, const Plan &plan);

/// Needs `file` and `facts` of the compilation.
BundleOptions bundleOptions(const Compiled &compiled);

} // namespace par
