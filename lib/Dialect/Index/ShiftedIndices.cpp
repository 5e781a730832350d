#include "ShiftedIndices.h"

using namespace mlir;

namespace par {

ShiftedIndices::ShiftedIndices(OpBuilder &builder, Location loc, Value indices, ArrayRef<StringAttr> axes,
                               int64_t shard) {
  auto type = cast<RankedTensorType>(indices.getType());
  Value start = buildShardStart(builder, loc, axes, shard);
  start = buildBroadcast(builder, loc, buildConvert(builder, loc, start, type.getElementType()), {}, type.getShape());
  Value shifted = SubtractOp::create(builder, loc, type, indices, start);
  Value zero = buildSplat(builder, loc, type, 0);
  Value above = CompareOp::create(builder, loc, Predicate::ge, shifted, zero);
  Value below = CompareOp::create(builder, loc, Predicate::lt, shifted, buildSplat(builder, loc, type, shard));
  here = AndOp::create(builder, loc, above.getType(), above, below);
  local = SelectOp::create(builder, loc, type, here, shifted, zero);
}

} // namespace par
