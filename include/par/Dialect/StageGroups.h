#pragma once

#include "par/Base/Hardware.h"
#include "par/Dialect/Par.h"

namespace par {

/// The group on most hosts, of the groups that the axes form on the stage.
RankGroup widestGroup(StageOp stage, llvm::ArrayRef<mlir::StringAttr> axes, const Hardware &hardware);

} // namespace par
