#pragma once

#include "par/Dialect/Par.h"
#include "par/format/Manifest.h"

namespace par {

/// The format's word for an element type.
format::DType dtypeOf(mlir::Type elementType);
std::vector<int64_t> shapeOf(mlir::RankedTensorType type);

/// Which rectangle every rank of a stage holds of a value with this type.
format::Layout layoutOf(DistType dist, StageOp stage);

/// The layouts of a module: layers have the same few, and each has every rank of its stage.
class LayoutTable {
public:
  const format::Layout &of(DistType dist, StageOp stage) {
    auto [known, fresh] = layouts.try_emplace({dist, stage});
    if (fresh)
      known->second = layoutOf(dist, stage);
    return known->second;
  }

private:
  llvm::DenseMap<std::pair<mlir::Type, mlir::Operation *>, format::Layout> layouts;
};

/// Adds the parts of another stage's layout. False, and nothing done, if the two do not fit in one table:
/// other local shape, or rectangles that overlap without being equal.
bool mergeLayout(format::Layout &layout, const format::Layout &other);

} // namespace par
