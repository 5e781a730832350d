// Resizing: along each dim a choice of elements, or a matmul with the weights of the interpolation.
#include "PickAlong.h"
#include "par/Dialect/Term.h"

#include <cmath>

namespace par {
namespace {

using namespace mlir;

/// The attributes of a resizing node for all dims.
struct Resizing {
  std::string mode, coordinates, nearest, policy;
  double a, extrapolation;
  bool exclude, antialias;
  bool isCrop() const { return coordinates == "tf_crop_and_resize"; }
};

Resizing readAttributes(NodeImporter &importer) {
  auto text = [&](const char *name, const char *otherwise) {
    return std::string(importer.node.stringAttribute(name, otherwise));
  };
  // Before opset 11 there were no such attributes.
  bool old = importer.opset() < 11;
  Resizing rule{text("mode", "nearest"),
                text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
                text("nearest_mode", old ? "floor" : "round_prefer_floor"),
                text("keep_aspect_ratio_policy", "stretch"),
                importer.node.floatAttribute("cubic_coeff_a", -0.75),
                importer.node.floatAttribute("extrapolation_value", 0),
                importer.node.intAttribute("exclude_outside", 0) != 0,
                importer.node.intAttribute("antialias", 0) != 0};
  if (rule.mode == "bilinear" || rule.mode == "trilinear")
    rule.mode = "linear";
  return rule;
}

/// One dim: its size, the target size, the scale, and the part that is resized (0 to 1: all).
struct Scaling {
  int64_t from = 1, to = 1;
  double scale = 1, begin = 0, end = 1;
};

/// The coordinate in the operand of element `index` of the result.
FailureOr<double> findCoordinate(NodeImporter &importer, const Resizing &rule, const Scaling &dim, int64_t index) {
  double length = double(dim.from), width = dim.scale * length, half = (index + 0.5) / dim.scale - 0.5;
  if (rule.coordinates == "half_pixel")
    return half;
  if (rule.coordinates == "pytorch_half_pixel")
    return width == 1 ? -0.5 : half;
  if (rule.coordinates == "half_pixel_symmetric")
    return half + length / 2 * (1 - dim.to / width);
  if (rule.coordinates == "asymmetric")
    return index / dim.scale;
  if (rule.coordinates == "align_corners")
    return width == 1 ? 0.0 : index * (length - 1) / (width - 1);
  if (rule.coordinates == "tf_half_pixel_for_nn")
    return (index + 0.5) / dim.scale;
  if (rule.isCrop())
    return width == 1 ? (dim.begin + dim.end) * (length - 1) / 2
                      : dim.begin * (length - 1) + index * (dim.end - dim.begin) * (length - 1) / (width - 1);
  return importer.error() << "its coordinate_transformation_mode is \"" << rule.coordinates << "\"";
}

bool isOutside(const Resizing &rule, const Scaling &dim, double x) {
  return rule.isCrop() && (x < 0 || x > double(dim.from - 1));
}

FailureOr<int64_t> findNearest(NodeImporter &importer, const Resizing &rule, const Scaling &dim, double x) {
  double nearest;
  if (rule.nearest == "round_prefer_floor")
    nearest = std::ceil(x - 0.5);
  else if (rule.nearest == "round_prefer_ceil")
    nearest = std::floor(x + 0.5);
  else if (rule.nearest == "floor")
    nearest = std::floor(x);
  else if (rule.nearest == "ceil")
    nearest = std::ceil(x);
  else
    return importer.error() << "its nearest_mode is \"" << rule.nearest << "\"";
  return std::clamp<int64_t>(int64_t(nearest), 0, dim.from - 1);
}

/// The weight of an element at `distance`.
double weightAt(const Resizing &rule, double distance) {
  double d = std::fabs(distance), a = rule.a;
  if (rule.mode == "linear")
    return std::max(0.0, 1 - d);
  if (d <= 1)
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/// Adds the weights of one result element to `row`; beyond its ends the operand repeats its last elements.
void addWeights(const Resizing &rule, const Scaling &dim, double x, MutableArrayRef<double> row) {
  // A result that is smaller averages over more elements.
  double scale = rule.antialias ? std::min(dim.scale, 1.0) : 1, reach = (rule.mode == "linear" ? 1 : 2) / scale,
         sum = 0;
  auto first = int64_t(std::ceil(x - reach)), last = int64_t(std::floor(x + reach));
  auto counts = [&](int64_t at) { return !rule.exclude || (at >= 0 && at < dim.from); };
  for (int64_t at = first; at <= last; ++at)
    sum += counts(at) ? weightAt(rule, (double(at) - x) * scale) : 0;
  for (int64_t at = first; at <= last; ++at)
    if (counts(at))
      row[std::clamp<int64_t>(at, 0, dim.from - 1)] += weightAt(rule, (double(at) - x) * scale) / sum;
}

/// The value with `dim` resized.
FailureOr<Value> resizeAlong(NodeImporter &importer, const Resizing &rule, Value value, int64_t at,
                             const Scaling &dim) {
  if ((rule.mode == "nearest" ? dim.to : dim.from * dim.to) > foldLimit)
    return importer.unsupported("a dim of " + Twine(dim.from) + " that becomes one of " + Twine(dim.to));
  SmallVector<int64_t> chosen;
  std::vector<double> weights(rule.mode == "nearest" ? 0 : dim.from * dim.to, 0);
  for (int64_t index = 0; index < dim.to; ++index) {
    FailureOr<double> x = findCoordinate(importer, rule, dim, index);
    if (failed(x))
      return failure();
    if (rule.mode != "nearest") {
      if (!isOutside(rule, dim, *x))
        addWeights(rule, dim, *x, MutableArrayRef(weights).slice(index * dim.from, dim.from));
      continue;
    }
    FailureOr<int64_t> nearest = findNearest(importer, rule, dim, *x);
    if (failed(nearest))
      return failure();
    chosen.push_back(*nearest);
  }
  if (rule.mode == "nearest")
    return pickAlong(importer, value, at, chosen);
  auto type = cast<RankedTensorType>(value.getType());
  FailureOr<Value> matrix =
      importer.constant(type.getElementType(), {dim.to, dim.from}, std::move(weights), "weights." + std::to_string(at));
  if (failed(matrix))
    return failure();
  // The new dim comes out last.
  Value product = buildDot(importer.builder, importer.loc, value, *matrix, {at}, {1});
  SmallVector<int64_t> order = dimRange(0, type.getRank() - 1);
  order.insert(order.begin() + at, type.getRank() - 1);
  return importer.transpose(product, order);
}

/// Fills elements with `extrapolation_value` if some dim's coordinate is out of bounds.
FailureOr<Value> fillOutside(NodeImporter &importer, const Resizing &rule, Value value, ArrayRef<Scaling> dims) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getNumElements() > foldLimit)
    return importer.unsupported("a crop of " + Twine(type.getNumElements()) + " elements");
  std::vector<double> inside(type.getNumElements());
  size_t at = 0;
  bool any = false;
  forEachIndex(type.getShape(), [&](ArrayRef<int64_t> index) {
    bool outside = false;
    for (auto [dim, position] : llvm::zip(dims, index)) {
      FailureOr<double> x = findCoordinate(importer, rule, dim, position);
      outside |= succeeded(x) && isOutside(rule, dim, *x);
    }
    any |= outside;
    inside[at++] = outside ? 0 : 1;
  });
  if (!any)
    return value;
  FailureOr<Value> mask = importer.constant(type.getElementType(), type.getShape(), std::move(inside), "inside");
  if (failed(mask))
    return failure();
  Term holds = Term(importer.builder, importer.loc, *mask).compare(Predicate::ne, 0), x = holds.with(value);
  return Value(holds.select(x, x.splat(rule.extrapolation)));
}

/// Which dims the node's lists speak of.
FailureOr<SmallVector<int64_t>> readAxes(NodeImporter &importer, int64_t rank) {
  SmallVector<int64_t> axes = dimRange(0, rank);
  if (const onnx::Attribute *given = importer.node.attribute("axes")) {
    axes.assign(given->ints.begin(), given->ints.end());
    for (int64_t &axis : axes) {
      FailureOr<int64_t> dim = normalizeDim(axis, rank);
      if (failed(dim))
        return importer.error() << "axis " << axis << " is not within " << rank << " dims";
      axis = *dim;
    }
  }
  return axes;
}

/// Numbers from a known input; nothing if it is left out or empty.
FailureOr<SmallVector<double>> readNumbers(NodeImporter &importer, size_t i) {
  SmallVector<double> numbers;
  if (!importer.has(i))
    return numbers;
  const StaticTensor *known = importer.known(i);
  if (!known || known->getRank() != 1)
    return importer.error() << "its input " << i << " depends on data, which an ahead-of-time program cannot hold";
  for (int64_t at = 0; at < known->getElements(); ++at)
    numbers.push_back(known->floatAt(known->position({at})));
  return numbers;
}

/// Sizes either stretch each dim, or scale all dims equally.
void applySizes(const Resizing &rule, ArrayRef<double> sizes, ArrayRef<int64_t> axes, SmallVector<Scaling> &dims) {
  double common = 0;
  for (auto [axis, size] : llvm::zip(axes, sizes)) {
    double scale = size / double(dims[axis].from);
    bool smaller = rule.policy == "not_larger";
    common = common == 0 ? scale : smaller ? std::min(common, scale) : std::max(common, scale);
  }
  for (auto [axis, size] : llvm::zip(axes, sizes)) {
    Scaling &dim = dims[axis];
    dim.to = int64_t(size);
    dim.scale = size / double(dim.from);
    if (rule.policy == "stretch")
      continue;
    dim.scale = common;
    dim.to = int64_t(std::floor(common * double(dim.from) + 0.5));
  }
}

FailureOr<SmallVector<Scaling>> readScalings(NodeImporter &importer, const Resizing &rule, ArrayRef<int64_t> shape) {
  bool old = importer.opset() < 11 || importer.node.opType == "Upsample";
  FailureOr<SmallVector<int64_t>> axes = readAxes(importer, shape.size());
  FailureOr<SmallVector<double>> scales = readNumbers(importer, old ? 1 : 2),
                                 roi = old ? FailureOr<SmallVector<double>>(SmallVector<double>())
                                           : readNumbers(importer, 1),
                                 sizes = old ? roi : readNumbers(importer, 3);
  if (failed(axes) || failed(scales) || failed(roi) || failed(sizes))
    return failure();
  if (const onnx::Attribute *given = importer.node.attribute("scales"); given && scales->empty())
    scales->assign(given->floats.begin(), given->floats.end());
  SmallVector<Scaling> dims;
  for (int64_t size : shape)
    dims.push_back({size, size});
  size_t count = axes->size();
  if ((sizes->size() != count && scales->size() != count) || (rule.isCrop() && roi->size() != 2 * count))
    return importer.error() << "its sizes, scales or roi do not fit its " << count << " axes";
  for (size_t i = 0; i < count && rule.isCrop(); ++i) {
    dims[(*axes)[i]].begin = (*roi)[i];
    dims[(*axes)[i]].end = (*roi)[i + count];
  }
  if (!sizes->empty())
    applySizes(rule, *sizes, *axes, dims);
  else
    for (auto [axis, scale] : llvm::zip(*axes, *scales)) {
      dims[axis].scale = scale;
      dims[axis].to = int64_t(std::floor(double(dims[axis].from) * scale));
    }
  for (const Scaling &dim : dims)
    if (dim.to < 1 || dim.to > INT32_MAX || dim.from < 1)
      return importer.error() << "a dim of " << dim.from << " would become one of " << dim.to;
  return dims;
}

LogicalResult importResize(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  Resizing rule = readAttributes(importer);
  FailureOr<SmallVector<Scaling>> dims = readScalings(importer, rule, type.getShape());
  if (failed(dims))
    return failure();
  if (rule.mode != "nearest" && rule.mode != "linear" && rule.mode != "cubic")
    return importer.unsupported("mode " + rule.mode);
  if (rule.mode != "nearest" && !isa<FloatType>(type.getElementType()))
    return importer.unsupported("mode " + rule.mode + " of integers");
  Value result = *x;
  for (auto [at, dim] : llvm::enumerate(*dims)) {
    if (dim.from == dim.to && dim.scale == 1 && !rule.isCrop())
      continue;
    FailureOr<Value> resized = resizeAlong(importer, rule, result, at, dim);
    if (failed(resized))
      return failure();
    result = *resized;
  }
  FailureOr<Value> filled = rule.isCrop() ? fillOutside(importer, rule, result, *dims) : FailureOr<Value>(result);
  return failed(filled) ? failure() : importer.bind(*filled);
}

} // namespace

void addResizeImports(ImportTable &table) {
  table["Resize"] = importResize;
  table["Upsample"] = importResize;
}

} // namespace par
