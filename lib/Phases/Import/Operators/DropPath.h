// Dropping that a module writes out by hand and that acts only in training.
#pragma once

#include "../Graph/GraphImporter.h"

namespace par {

/// If `value`, a multiplication or division, drops elements and makes up for it: `value` in steps that train, and the
/// undropped value in others. Else `value`.
llvm::FailureOr<mlir::Value> keepWhereNotTrained(NodeImporter &importer, mlir::Value value);

} // namespace par
