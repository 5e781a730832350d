// Grids of places in an image, and images sampled at them.
#include "Sampling.h"

namespace par {
namespace {

using namespace mlir;

/// Opset 16's bilinear and bicubic are later opsets' linear and cubic.
FailureOr<Sampling> samplingOf(NodeImporter &importer) {
  StringRef mode(importer.node.stringAttribute("mode", "linear"));
  StringRef padding(importer.node.stringAttribute("padding_mode", "zeros"));
  mode.consume_front("bi");
  auto interpolation = llvm::StringSwitch<std::optional<Interpolation>>(mode)
                           .Case("nearest", Interpolation::Nearest)
                           .Case("linear", Interpolation::Linear)
                           .Case("cubic", Interpolation::Cubic)
                           .Default(std::nullopt);
  auto outside = llvm::StringSwitch<std::optional<Outside>>(padding)
                     .Case("zeros", Outside::Zero)
                     .Case("border", Outside::Border)
                     .Case("reflection", Outside::Reflect)
                     .Default(std::nullopt);
  if (!interpolation || !outside)
    return importer.error() << "mode is \"" << mode << "\" and padding_mode \"" << padding
                            << "\", expected nearest, linear or cubic, and zeros, border or reflection";
  return Sampling{*interpolation, *outside, importer.node.intAttribute("align_corners", 0) != 0};
}

/// From [-1, 1] to elements of a dim: the ends are the outermost elements' middles, or their outer borders.
Term toElements(Term normalized, int64_t size, bool corners) {
  return corners ? (normalized + 1.0) * (double(size - 1) / 2) : ((normalized + 1.0) * double(size) - 1.0) / 2;
}

LogicalResult importGridSample(NodeImporter &importer) {
  FailureOr<Value> image = importer.tensor(0), grid = importer.tensor(1);
  FailureOr<Sampling> sampling = samplingOf(importer);
  if (failed(image) || failed(grid) || failed(sampling))
    return failure();
  auto type = cast<RankedTensorType>(image->getType()), gridType = cast<RankedTensorType>(grid->getType());
  int64_t rank = type.getRank(), spatial = rank - 2;
  if (spatial < 1 || gridType.getRank() != rank || gridType.getDimSize(rank - 1) != spatial ||
      gridType.getDimSize(0) != type.getDimSize(0) || !isa<FloatType>(gridType.getElementType()) ||
      llvm::is_contained(type.getShape().drop_front(2), 0))
    return importer.error() << "samples " << type << " at " << gridType << ", expected a grid of (batch, places.., "
                            << spatial << ") floats";
  OpBuilder &builder = importer.builder;
  ArrayRef<int64_t> dims = type.getShape().drop_front(2), places = gridType.getShape().drop_front().drop_back();
  int64_t batch = type.getDimSize(0), channels = type.getDimSize(1), count = countElements(places);
  bool isFloat = isa<FloatType>(type.getElementType()), narrow = gridType.getElementTypeBitWidth() < 32;
  Term flat = termOf(importer, importer.reshape(*grid, {batch, count, spatial}));
  SmallVector<Term> at;
  for (auto [i, size] : llvm::enumerate(dims)) { // the grid names the last dim first
    Term component = flat.with(importer.reshape(importer.slice(flat, 2, spatial - 1 - i, 1), {batch, count}));
    component = toElements(narrow ? component.convert(builder.getF32Type()) : component, size, sampling->corners);
    at.push_back(bringInside(component, size, *sampling));
  }
  Term pixels = termOf(importer, importer.reshape(*image, {batch, channels, countElements(dims)}));
  Term result = sampleSum(isFloat ? pixels : pixels.convert(builder.getF32Type()), dims, at, *sampling);
  SmallVector<int64_t> shape{batch, channels};
  llvm::append_range(shape, places);
  return importer.bind(importer.reshape(isFloat ? result : result.convert(type.getElementType()), shape));
}

/// Component j of the grid is theta[j] times (x, y, .., 1), x along the last dim.
LogicalResult importAffineGrid(NodeImporter &importer) {
  FailureOr<Value> theta = importer.tensor(0);
  FailureOr<std::optional<SmallVector<int64_t>>> size = importer.ints("size", 1);
  if (failed(theta) || failed(size))
    return failure();
  auto type = cast<RankedTensorType>(theta->getType());
  int64_t spatial = *size ? int64_t((*size)->size()) - 2 : 0;
  int64_t elements = 1;
  bool fits = !*size || llvm::all_of(**size, [&](int64_t dim) {
    return dim >= 0 && dim < (int64_t(1) << 31) && (elements *= std::max<int64_t>(dim, 1)) < (int64_t(1) << 31);
  });
  if (!fits || type.getRank() != 3 || spatial < 1 || !isa<FloatType>(type.getElementType()) ||
      type.getShape() != ArrayRef<int64_t>{(**size)[0], spatial, spatial + 1})
    return importer.error() << "theta is " << type << ", which does not fit a size of " << spatial + 2 << " dims";
  bool corners = importer.node.intAttribute("align_corners", 0) != 0;
  SmallVector<int64_t> shape{type.getDimSize(0)};
  llvm::append_range(shape, ArrayRef(**size).drop_front(2));
  auto entry = [&](int64_t j, int64_t k) {
    Value cell = importer.slice(importer.slice(*theta, 1, j, 1), 2, k, 1);
    return termOf(importer, importer.reshape(cell, {type.getDimSize(0)})).broadcast({0}, shape);
  };
  SmallVector<Value> components;
  for (int64_t j = 0; j < spatial; ++j) {
    Term sum = entry(j, spatial);
    for (int64_t k = 0; k < spatial; ++k) {
      double count = double(shape[spatial - k]), step = 2 / (corners ? std::max(count - 1, 1.0) : count);
      Term at = progression(importer, type.getElementType(), shape, spatial - k, corners ? -1 : step / 2 - 1, step);
      sum = sum + entry(j, k) * at;
    }
    SmallVector<int64_t> column(shape);
    column.push_back(1);
    components.push_back(importer.reshape(sum, column));
  }
  return importer.bind(ConcatOp::create(importer.builder, importer.loc, components, spatial + 1));
}

} // namespace

void addGridImports(ImportTable &table) {
  table["AffineGrid"] = importAffineGrid;
  table["GridSample"] = importGridSample;
}

} // namespace par
