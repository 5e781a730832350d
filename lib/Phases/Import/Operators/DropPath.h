// Dropping that a module writes out, and that acts in training alone.
#pragma once

#include "../Graph/GraphImporter.h"

namespace par {

/// `value`, a product or a quotient, where the step is trained, and what it is with nothing dropped elsewhere, if it
/// drops elements with a chance that it makes up for; else `value`.
llvm::FailureOr<mlir::Value> keepWhereNotTrained(NodeImporter &importer, mlir::Value value);

} // namespace par
