#include "Chunks.h"

using namespace mlir;

namespace par {

/// Elements [from, to) of a dim.
static Value sliceDim(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t from, int64_t to) {
  SmallVector<int64_t> limits(getTensorType(value.getType()).getShape());
  SmallVector<int64_t> starts(limits.size(), 0), strides(limits.size(), 1);
  starts[dim] = from;
  limits[dim] = to;
  return SliceOp::create(builder, loc, value, starts, limits, strides);
}

/// The dim as two, (parts, rest).
static Value splitDim(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t parts) {
  SmallVector<int64_t> shape(getTensorType(value.getType()).getShape());
  shape[dim] /= parts;
  shape.insert(shape.begin() + dim, parts);
  return buildReshape(builder, loc, value, shape);
}

/// Merges a dim and the next one.
static Value joinDims(OpBuilder &builder, Location loc, Value value, int64_t dim) {
  SmallVector<int64_t> shape(getTensorType(value.getType()).getShape());
  shape[dim + 1] *= shape[dim];
  shape.erase(shape.begin() + dim);
  return buildReshape(builder, loc, value, shape);
}

Value takeChunk(OpBuilder &builder, Location loc, Value value, Cut cut, int64_t chunk, int64_t chunks) {
  int64_t size = cut.extent(value.getType()) / chunks;
  if (cut.parts == 1)
    return sliceDim(builder, loc, value, cut.dim, chunk * size, (chunk + 1) * size);
  Value split = splitDim(builder, loc, value, cut.dim, cut.parts);
  return joinDims(builder, loc, sliceDim(builder, loc, split, cut.dim + 1, chunk * size, (chunk + 1) * size), cut.dim);
}

Value joinChunks(OpBuilder &builder, Location loc, ArrayRef<Value> chunks, Cut cut) {
  if (cut.parts == 1)
    return ConcatOp::create(builder, loc, chunks, cut.dim);
  SmallVector<Value> split =
      llvm::map_to_vector(chunks, [&](Value chunk) { return splitDim(builder, loc, chunk, cut.dim, cut.parts); });
  return joinDims(builder, loc, ConcatOp::create(builder, loc, split, cut.dim + 1), cut.dim);
}

SliceOp trimOf(AllGatherOp gather) {
  Value whole = gather.getResult(0);
  auto trim = whole.hasOneUse() ? dyn_cast<SliceOp>(*whole.user_begin()) : SliceOp();
  if (!trim || llvm::any_of(trim.getStarts(), [](int64_t start) { return start != 0; }) ||
      llvm::any_of(trim.getStrides(), [](int64_t stride) { return stride != 1; }))
    return {};
  for (auto [dim, sizes] :
       llvm::enumerate(llvm::zip(getTensorType(trim.getType()).getShape(), getTensorType(whole.getType()).getShape())))
    if (int64_t(dim) != gather.getDims()[0] && std::get<0>(sizes) != std::get<1>(sizes))
      return {};
  return trim;
}

PadOp filledBy(ReduceScatterOp scatter) {
  auto pad = scatter.getInputs()[0].getDefiningOp<PadOp>();
  if (!pad || !pad->hasOneUse() || llvm::any_of(pad.getLow(), [](int64_t low) { return low != 0; }))
    return {};
  for (auto [dim, high] : llvm::enumerate(pad.getHigh()))
    if (int64_t(dim) != scatter.getDims()[0] && high != 0)
      return {};
  return pad;
}

Value fitChunk(OpBuilder &builder, Operation *fit, Value chunk, int64_t dim) {
  if (!fit)
    return chunk;
  SmallVector<int64_t> shape(getTensorType(chunk.getType()).getShape());
  shape[dim] = getTensorType(fit->getResult(0).getType()).getDimSize(dim);
  if (auto pad = dyn_cast<PadOp>(fit))
    return PadOp::create(builder, fit->getLoc(), getTensorType(chunk.getType()).clone(shape), chunk, pad.getLow(),
                         pad.getHigh(), pad.getValue());
  return sliceDim(builder, fit->getLoc(), chunk, dim, 0, shape[dim]);
}

} // namespace par
