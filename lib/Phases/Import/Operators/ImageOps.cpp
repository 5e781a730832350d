// Pads, crops and rearrangements of dims.
#include "PickAlong.h"
#include "par/Dialect/Term.h"

namespace par {

using namespace mlir;

/// How often each element is repeated in its place; 0 if the indices are something else.
static int64_t findRepetition(ArrayRef<int64_t> indices, int64_t size) {
  int64_t times = int64_t(indices.size()) / size;
  if (times < 1 || times * size != int64_t(indices.size()))
    return 0;
  for (auto [at, index] : llvm::enumerate(indices))
    if (index != int64_t(at) / times)
      return 0;
  return times;
}

FailureOr<Value> pickAlong(NodeImporter &importer, Value value, int64_t dim, ArrayRef<int64_t> indices) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t size = type.getDimSize(dim), count = indices.size();
  bool consecutive = true;
  for (auto [at, index] : llvm::enumerate(indices))
    consecutive &= index == indices.front() + int64_t(at);
  if (consecutive && count > 0)
    return importer.slice(value, dim, indices.front(), count);
  SmallVector<int64_t> shape(type.getShape());
  if (int64_t times = findRepetition(indices, size)) {
    SmallVector<int64_t> apart(shape), kept = dimRange(0, dim + 1);
    apart.insert(apart.begin() + dim + 1, times);
    llvm::append_range(kept, dimRange(dim + 2, type.getRank() + 1));
    shape[dim] = count;
    return importer.reshape(buildBroadcast(importer.builder, importer.loc, value, kept, apart), shape);
  }
  FailureOr<Value> chosen = importer.constant(importer.builder.getI64Type(), {count}, {indices.begin(), indices.end()},
                                              "indices." + std::to_string(dim));
  if (failed(chosen))
    return failure();
  shape[dim] = count;
  return Value(GatherOp::create(importer.builder, importer.loc, type.clone(shape), value, *chosen, dim));
}

namespace {

/// One dim's padding; negative: cropping.
struct Padding {
  int64_t low = 0, high = 0;
};

/// The element used for `position`, which may be out of bounds.
int64_t mirror(StringRef mode, int64_t position, int64_t size) {
  if (mode == "edge")
    return std::clamp<int64_t>(position, 0, size - 1);
  if (mode == "wrap")
    return (position % size + size) % size;
  int64_t period = std::max<int64_t>(2 * (size - 1), 1), at = (position % period + period) % period;
  return at < size ? at : period - at;
}

FailureOr<SmallVector<Padding>> readPadding(NodeImporter &importer, ArrayRef<int64_t> shape) {
  bool old = importer.opset() < 11;
  FailureOr<std::optional<SmallVector<int64_t>>> pads = importer.ints("pads", old ? 99 : 1),
                                                 axes = importer.ints("axes", 3);
  if (failed(pads) || failed(axes))
    return failure();
  int64_t rank = shape.size();
  SmallVector<int64_t> dims = *axes ? **axes : dimRange(0, rank);
  SmallVector<Padding> padding(rank);
  if (!*pads || (*pads)->size() != 2 * dims.size())
    return importer.error() << "its pads do not fit its " << dims.size() << " axes";
  for (size_t i = 0; i < dims.size(); ++i) {
    FailureOr<int64_t> dim = normalizeDim(dims[i], rank);
    int64_t before = (**pads)[i], after = (**pads)[i + dims.size()];
    if (failed(dim))
      return importer.error() << "axis " << dims[i] << " is not within " << rank << " dims";
    auto isFar = [](int64_t n) { return n < -INT32_MAX || n > INT32_MAX; };
    if (isFar(before) || isFar(after) || shape[*dim] + before + after < 0)
      return importer.error() << "pads " << before << " and " << after << " do not fit dim " << *dim << " of "
                              << shape[*dim];
    padding[*dim] = {before, after};
  }
  return padding;
}

/// Pads with a constant; negative padding crops.
FailureOr<Value> padConstant(NodeImporter &importer, Value x, ArrayRef<Padding> padding, double value) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> low, high, shape;
  for (auto [dim, pad] : llvm::enumerate(padding)) {
    int64_t from = std::max<int64_t>(-pad.low, 0), to = type.getDimSize(dim) + std::min<int64_t>(pad.high, 0);
    if (to < from)
      return importer.unsupported("pads that cut more than there is");
    x = importer.slice(x, dim, from, to - from);
    low.push_back(std::max<int64_t>(pad.low, 0));
    high.push_back(std::max<int64_t>(pad.high, 0));
    shape.push_back(to - from + low.back() + high.back());
  }
  Type element = type.getElementType();
  TypedAttr fill = isa<FloatType>(element) ? TypedAttr(importer.builder.getFloatAttr(element, value))
                                           : importer.builder.getIntegerAttr(element, int64_t(value));
  if (llvm::ArrayRef<int64_t>(shape) == cast<RankedTensorType>(x.getType()).getShape())
    return x;
  return Value(PadOp::create(importer.builder, importer.loc, type.clone(shape), x, low, high, fill));
}

LogicalResult importPad(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<SmallVector<Padding>> padding = readPadding(importer, type.getShape());
  if (failed(padding))
    return failure();
  std::string mode(importer.node.stringAttribute("mode", "constant"));
  std::optional<double> value = importer.node.floatAttribute("value", 0);
  if (importer.opset() >= 11 && importer.has(2))
    value = importer.known(2) ? importer.known(2)->splat() : std::nullopt;
  if (mode == "constant") {
    if (!value)
      return importer.error() << "its input 2 (value) depends on data, which an ahead-of-time program cannot hold";
    FailureOr<Value> padded = padConstant(importer, *x, *padding, *value);
    return failed(padded) ? failure() : importer.bind(*padded);
  }
  if (mode != "reflect" && mode != "edge" && mode != "wrap")
    return importer.error() << "its mode is \"" << mode << "\"";
  Value result = *x;
  for (auto [dim, pad] : llvm::enumerate(*padding)) {
    int64_t size = type.getDimSize(dim);
    if ((pad.low == 0 && pad.high == 0) || size == 0)
      continue;
    if (pad.low + size + pad.high > foldLimit)
      return importer.unsupported("mode " + mode + " of " + Twine(pad.low + size + pad.high) + " elements along a dim");
    SmallVector<int64_t> indices;
    for (int64_t position = -pad.low; position < size + pad.high; ++position)
      indices.push_back(mirror(mode, position, size));
    FailureOr<Value> picked = pickAlong(importer, result, dim, indices);
    if (failed(picked))
      return failure();
    result = *picked;
  }
  return importer.bind(result);
}

/// Crops or pads dims to a size, evenly on both sides.
LogicalResult importCenterCropPad(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  FailureOr<std::optional<SmallVector<int64_t>>> sizes = importer.ints("shape", 1);
  if (failed(x) || failed(sizes))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  SmallVector<int64_t> axes = dimRange(0, type.getRank());
  if (const onnx::Attribute *given = importer.node.attribute("axes"))
    axes.assign(given->ints.begin(), given->ints.end());
  if (!*sizes || (*sizes)->size() != axes.size())
    return importer.error() << "its shape does not have " << axes.size() << " entries";
  SmallVector<Padding> padding(type.getRank());
  for (auto [axis, size] : llvm::zip(axes, **sizes)) {
    FailureOr<int64_t> dim = normalizeDim(axis, type.getRank());
    if (failed(dim) || size < 0)
      return importer.error() << "axis " << axis << " of size " << size << " does not fit " << type;
    int64_t more = size - type.getDimSize(*dim), half = std::abs(more) / 2;
    padding[*dim].low = more < 0 ? -half : half;
    padding[*dim].high = more - padding[*dim].low;
  }
  FailureOr<Value> padded = padConstant(importer, *x, padding, 0);
  return failed(padded) ? failure() : importer.bind(*padded);
}

/// [N, C, H, W] and the size of the blocks that move between channels and space.
struct Blocks {
  Value x;
  ArrayRef<int64_t> shape;
  int64_t size;
};

FailureOr<Blocks> readBlocks(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  int64_t size = importer.node.intAttribute("blocksize", 0);
  if (type.getRank() != 4 || size < 1 || size > 32768)
    return importer.error() << "blocks of " << size << " do not fit " << type << ", expected four dims";
  return Blocks{*x, type.getShape(), size};
}

LogicalResult importDepthToSpace(NodeImporter &importer) {
  FailureOr<Blocks> blocks = readBlocks(importer);
  if (failed(blocks))
    return failure();
  ArrayRef<int64_t> shape = blocks->shape;
  int64_t b = blocks->size, channels = shape[1] / (b * b);
  if (channels * b * b != shape[1])
    return importer.error() << shape[1] << " channels do not divide into blocks of " << b << " x " << b;
  bool columns = importer.node.stringAttribute("mode", "DCR") == "CRD";
  Value apart = columns ? importer.reshape(blocks->x, {shape[0], channels, b, b, shape[2], shape[3]})
                        : importer.reshape(blocks->x, {shape[0], b, b, channels, shape[2], shape[3]});
  Value moved = columns ? importer.transpose(apart, {0, 1, 4, 2, 5, 3}) : importer.transpose(apart, {0, 3, 4, 1, 5, 2});
  return importer.bind(importer.reshape(moved, {shape[0], channels, shape[2] * b, shape[3] * b}));
}

LogicalResult importSpaceToDepth(NodeImporter &importer) {
  FailureOr<Blocks> blocks = readBlocks(importer);
  if (failed(blocks))
    return failure();
  ArrayRef<int64_t> shape = blocks->shape;
  int64_t b = blocks->size;
  if (shape[2] % b != 0 || shape[3] % b != 0)
    return importer.error() << shape[2] << " x " << shape[3] << " does not divide into blocks of " << b << " x " << b;
  Value apart = importer.reshape(blocks->x, {shape[0], shape[1], shape[2] / b, b, shape[3] / b, b});
  Value moved = importer.transpose(apart, {0, 3, 5, 1, 2, 4});
  return importer.bind(importer.reshape(moved, {shape[0], shape[1] * b * b, shape[2] / b, shape[3] / b}));
}

} // namespace

void addImageImports(ImportTable &table) {
  table["Pad"] = importPad;
  table["CenterCropPad"] = importCenterCropPad;
  table["DepthToSpace"] = importDepthToSpace;
  table["SpaceToDepth"] = importSpaceToDepth;
}

} // namespace par
