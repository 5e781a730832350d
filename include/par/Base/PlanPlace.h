#pragma once

#include "mlir/IR/Location.h"

namespace par {

/// The location of a place in a plan, "plan.yaml:3:16", for errors of passes that the plan's word forces; of another
/// text such as "--set", line 0 of it.
mlir::Location placeInPlan(mlir::MLIRContext *context, llvm::StringRef said);

} // namespace par
