// Regions of images, and convolutions whose taps move.
#include "Indices.h"
#include "Sampling.h"

namespace par {
namespace {

using namespace mlir;

struct RoiAlign {
  Term image, rois; ///< (regions, C, H, W) and (regions, 4)
  int64_t height, width, ratio;
  double offset; ///< of the regions' coordinates
  double scale;
  bool half;

  /// First coordinate and length of every region along a dim: 0 is x.
  std::pair<Term, Term> extent(NodeImporter &importer, int64_t dim) const;
  /// Coordinates of all samples along a dim, (regions, height * width * ratio * ratio).
  Term coordinates(NodeImporter &importer, int64_t dim) const;
};

std::pair<Term, Term> RoiAlign::extent(NodeImporter &importer, int64_t dim) const {
  int64_t regions = rois.getShape()[0];
  auto column = [&](int64_t i) {
    return rois.with(importer.reshape(importer.slice(rois, 1, i, 1), {regions})) * scale - offset;
  };
  Term start = column(dim), length = column(dim + 2) - start;
  if (!half) // malformed regions are one element long
    length = length.compare(Predicate::ge, 1).select(length, length.splat(1));
  return {start, length};
}

Term RoiAlign::coordinates(NodeImporter &importer, int64_t dim) const {
  auto [start, length] = extent(importer, dim);
  int64_t bins = dim == 0 ? width : height;
  SmallVector<int64_t> shape{rois.getShape()[0], height, width, ratio, ratio};
  Type element = rois.getType().getElementType();
  Term bin = progression(importer, element, shape, dim == 0 ? 2 : 1, 0, 1.0 / double(bins));
  Term within =
      progression(importer, element, shape, dim == 0 ? 4 : 3, 0.5 / double(bins * ratio), 1.0 / double(bins * ratio));
  Term at = start.broadcast({0}, shape) + length.broadcast({0}, shape) * (bin + within);
  return at.with(importer.reshape(at, {shape[0], height * width * ratio * ratio}));
}

FailureOr<RoiAlign> readRoiAlign(NodeImporter &importer) {
  FailureOr<Value> image = importer.tensor(0), rois = importer.tensor(1), batch = importer.tensor(2);
  if (failed(image) || failed(rois) || failed(batch))
    return failure();
  auto type = cast<RankedTensorType>(image->getType()), roiType = cast<RankedTensorType>(rois->getType());
  auto batchType = cast<RankedTensorType>(batch->getType());
  if (type.getRank() != 4 || roiType.getRank() != 2 || roiType.getDimSize(1) != 4 || batchType.getRank() != 1 ||
      batchType.getDimSize(0) != roiType.getDimSize(0) || !isa<FloatType>(type.getElementType()) ||
      roiType.getElementType() != type.getElementType() || !isa<IntegerType>(batchType.getElementType()))
    return importer.error() << "images are " << type << ", regions " << roiType << " of images " << batchType;
  const onnx::Node &node = importer.node;
  int64_t ratio = node.intAttribute("sampling_ratio", 0);
  if (ratio <= 0)
    return importer.error()
           << "sampling_ratio is " << ratio
           << ": the number of samples then depends on data, which an ahead-of-time program cannot hold";
  int64_t height = node.intAttribute("output_height", 1), width = node.intAttribute("output_width", 1);
  constexpr int64_t most = 4096; // of anything, so that products of them are numbers
  if (height < 1 || width < 1 || height > most || width > most || ratio > most || type.getDimSize(2) < 1 ||
      type.getDimSize(3) < 1)
    return importer.error() << "pools " << type << " to " << height << " x " << width << " bins of " << ratio << " x "
                            << ratio << " samples";
  StringRef mode(node.stringAttribute("coordinate_transformation_mode",
                                      importer.opset() < 16 ? "output_half_pixel" : "half_pixel"));
  Term images = termOf(importer, *image);
  images = images.with(gatherAt(importer, images, *batch, 0));
  bool half = mode == "half_pixel";
  return RoiAlign{
      images, images.with(*rois), height, width, ratio, half ? 0.5 : 0.0, node.floatAttribute("spatial_scale", 1),
      half};
}

/// Each bin is the mean of ratio x ratio samples, or the largest of the terms that they are sums of.
LogicalResult importRoiAlign(NodeImporter &importer) {
  FailureOr<RoiAlign> roi = readRoiAlign(importer);
  if (failed(roi))
    return failure();
  StringRef mode(importer.node.stringAttribute("mode", "avg"));
  if (mode != "avg" && mode != "max")
    return importer.error() << "mode is \"" << mode << "\", expected avg or max";
  ArrayRef<int64_t> shape = roi->image.getShape(), dims = shape.drop_front(2);
  SmallVector<Term> at{roi->coordinates(importer, 1), roi->coordinates(importer, 0)};
  std::optional<Term> inside;
  for (auto [coordinate, size] : llvm::zip(at, dims)) { // nothing is further out than one element
    Term low = coordinate.compare(Predicate::ge, -1), high = coordinate.compare(Predicate::le, double(size));
    Term here = low.with(AndOp::create(importer.builder, importer.loc, low, high));
    inside = inside ? here.with(AndOp::create(importer.builder, importer.loc, *inside, here)) : here;
    Term first = coordinate.compare(Predicate::ge, 0).select(coordinate, coordinate.splat(0));
    coordinate = first.compare(Predicate::le, double(size - 1)).select(first, first.splat(double(size - 1)));
  }
  Term pixels = roi->image.with(importer.reshape(roi->image, {shape[0], shape[1], countElements(dims)}));
  SmallVector<Term> terms = sampleTerms(pixels, dims, at, Sampling{Interpolation::Linear, Outside::Border, false});
  Term joined = terms[0];
  for (Term term : ArrayRef(terms).drop_front())
    joined =
        mode == "avg" ? joined + term : joined.with(MaximumOp::create(importer.builder, importer.loc, joined, term));
  joined = inside->broadcast({0, 2}, joined.getShape()).select(joined, joined.splat(0));
  int64_t samples = roi->ratio * roi->ratio;
  joined = joined.with(importer.reshape(joined, {shape[0], shape[1], roi->height * roi->width, samples}));
  Term result =
      mode == "avg" ? joined.reduce(ReduceKind::sum, {3}) / double(samples) : joined.reduce(ReduceKind::max, {3});
  return importer.bind(importer.reshape(result, {shape[0], shape[1], roi->height, roi->width}));
}

struct DeformConv {
  RankedTensorType type, filter, offset;
  SmallVector<int64_t> strides, dilations, pads;
  int64_t groups, offsetGroups;

  int64_t spatial() const { return type.getRank() - 2; }
  ArrayRef<int64_t> window() const { return filter.getShape().drop_front(2); }
  ArrayRef<int64_t> places() const { return offset.getShape().drop_front(2); }
  int64_t taps() const { return countElements(window()); }
  int64_t batch() const { return type.getDimSize(0); }
  /// Coordinates of the unmoved taps along dim i, (taps * places).
  Term still(NodeImporter &importer, int64_t i) const;
};

Term DeformConv::still(NodeImporter &importer, int64_t i) const {
  SmallVector<int64_t> shape(window());
  llvm::append_range(shape, places());
  Type element = type.getElementType();
  Term tap = progression(importer, element, shape, i, -double(pads[i]), double(dilations[i]));
  Term place = progression(importer, element, shape, spatial() + i, 0, double(strides[i]));
  return tap.with(importer.reshape(tap + place, {countElements(shape)}));
}

SmallVector<int64_t> intsOr(const onnx::Node &node, std::string_view name, size_t count, int64_t otherwise) {
  const onnx::Attribute *given = node.attribute(name);
  return given && given->ints.size() == count ? SmallVector<int64_t>(given->ints.begin(), given->ints.end())
                                              : SmallVector<int64_t>(count, otherwise);
}

FailureOr<DeformConv> readDeformConv(NodeImporter &importer) {
  FailureOr<RankedTensorType> type = importer.type(0), filter = importer.type(1), offset = importer.type(2);
  if (failed(type) || failed(filter) || failed(offset))
    return failure();
  const onnx::Node &node = importer.node;
  size_t spatial = std::max<int64_t>(type->getRank() - 2, 1);
  DeformConv conv{*type,
                  *filter,
                  *offset,
                  intsOr(node, "strides", spatial, 1),
                  intsOr(node, "dilations", spatial, 1),
                  intsOr(node, "pads", 2 * spatial, 0),
                  node.intAttribute("group", 1),
                  node.intAttribute("offset_group", 1)};
  // Numbers out of the range of dims would overflow below.
  auto fitsInt32 = [](int64_t n) { return n >= -INT32_MAX && n <= INT32_MAX; };
  bool fits =
      llvm::all_of(conv.strides, fitsInt32) && llvm::all_of(conv.dilations, fitsInt32) &&
      llvm::all_of(conv.pads, fitsInt32) && fitsInt32(conv.groups) && fitsInt32(conv.offsetGroups) &&
      type->getRank() >= 3 && filter->getRank() == type->getRank() && offset->getRank() == type->getRank() &&
      conv.groups > 0 && conv.offsetGroups > 0 && filter->getDimSize(0) % conv.groups == 0 &&
      type->getDimSize(1) == saturatingProduct(filter->getDimSize(1), conv.groups) &&
      type->getDimSize(1) % conv.offsetGroups == 0 && offset->getDimSize(0) == conv.batch() &&
      offset->getDimSize(1) == saturatingProduct(conv.offsetGroups, saturatingProduct(conv.taps(), conv.spatial())) &&
      !llvm::is_contained(type->getShape().drop_front(2), 0) && isa<FloatType>(type->getElementType()) &&
      filter->getElementType() == type->getElementType() && offset->getElementType() == type->getElementType();
  for (size_t i = 0; fits && i < spatial; ++i) {
    int64_t reach = (conv.window()[i] - 1) * conv.dilations[i] + 1;
    int64_t padded = type->getDimSize(2 + i) + conv.pads[i] + conv.pads[spatial + i];
    fits = conv.strides[i] > 0 && (padded - reach) / conv.strides[i] + 1 == conv.places()[i];
  }
  if (!fits)
    return importer.error() << "convolves " << *type << " with " << *filter << " moved by " << *offset
                            << ", which do not fit together";
  return conv;
}

/// The samples of each tap at each position, (batch * offset groups, channels of one, taps * places).
FailureOr<Term> movedTaps(NodeImporter &importer, const DeformConv &conv) {
  FailureOr<Value> image = importer.tensor(0), offset = importer.tensor(2);
  if (failed(image) || failed(offset))
    return failure();
  int64_t places = countElements(conv.places()), rows = conv.batch() * conv.offsetGroups, taps = conv.taps();
  ArrayRef<int64_t> dims = conv.type.getShape().drop_front(2);
  Term moves = termOf(importer, importer.reshape(*offset, {rows, taps, conv.spatial(), places}));
  SmallVector<Term> at;
  for (int64_t i = 0; i < conv.spatial(); ++i) {
    Term move = moves.with(importer.reshape(importer.slice(moves, 2, i, 1), {rows, taps * places}));
    at.push_back(conv.still(importer, i).broadcast({1}, move.getShape()) + move);
  }
  Term pixels =
      moves.with(importer.reshape(*image, {rows, conv.type.getDimSize(1) / conv.offsetGroups, countElements(dims)}));
  Term seen = sampleSum(pixels, dims, at, Sampling{Interpolation::Linear, Outside::Zero, true});
  if (!importer.has(4))
    return seen;
  FailureOr<Value> mask = importer.tensor(4);
  if (failed(mask))
    return failure();
  auto maskType = cast<RankedTensorType>(mask->getType());
  if (maskType.getNumElements() != rows * taps * places || maskType.getElementType() != conv.type.getElementType())
    return importer.error() << "its mask is " << maskType << ", expected " << rows * taps * places << " elements of "
                            << conv.type.getElementType();
  Term weights = seen.with(importer.reshape(*mask, {rows, taps * places}));
  return seen * weights.broadcast({0, 2}, seen.getShape());
}

LogicalResult importDeformConv(NodeImporter &importer) {
  FailureOr<DeformConv> conv = readDeformConv(importer);
  if (failed(conv))
    return failure();
  FailureOr<Value> filter = importer.tensor(1);
  FailureOr<Term> seen = movedTaps(importer, *conv);
  if (failed(filter) || failed(seen))
    return failure();
  int64_t outputs = conv->filter.getDimSize(0), group = conv->filter.getDimSize(1) * conv->taps();
  int64_t places = countElements(conv->places());
  Value columns = importer.reshape(*seen, {conv->batch(), conv->groups, group, places});
  Value weights = importer.reshape(*filter, {conv->groups, outputs / conv->groups, group});
  // (groups, outputs of one, batch, places)
  Value product = buildDot(importer.builder, importer.loc, weights, columns, {2}, {2}, {0}, {1});
  SmallVector<int64_t> shape{conv->batch(), outputs};
  llvm::append_range(shape, conv->places());
  Term result = termOf(importer, importer.reshape(importer.transpose(product, {2, 0, 1, 3}), shape));
  if (importer.has(3)) {
    FailureOr<Value> bias = importer.tensor(3);
    if (failed(bias))
      return failure();
    auto biasType = cast<RankedTensorType>(bias->getType());
    if (biasType != conv->type.clone(ArrayRef<int64_t>(outputs)))
      return importer.error() << "its bias is " << biasType << ", it has " << outputs << " outputs";
    result = result + result.with(*bias).broadcast({1}, shape);
  }
  return importer.bind(result);
}

} // namespace

void addRegionImports(ImportTable &table) {
  table["DeformConv"] = importDeformConv;
  table["RoiAlign"] = importRoiAlign;
}

} // namespace par
