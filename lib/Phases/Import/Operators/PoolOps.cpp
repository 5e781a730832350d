// Pools: reductions of windows.
#include "ImportWindows.h"
#include "par/Dialect/Term.h"

namespace par {
namespace {

using namespace mlir;

/// A pool's operand and windows.
struct Pool {
  Term x;
  Windows windows;
  ArrayRef<int64_t> lengths() const { return x.getShape().drop_front(2); }
};

FailureOr<Pool> readPool(NodeImporter &importer, bool floats = true) {
  FailureOr<Value> x = spatialOperand(importer);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  if (floats && !isa<FloatType>(type.getElementType()))
    return importer.error() << "op " << importer.node.opType << " of " << type.getElementType()
                            << " is not supported yet";
  const onnx::Attribute *shape = importer.node.attribute("kernel_shape");
  if (!shape)
    return importer.error() << "has no kernel_shape";
  FailureOr<Windows> windows = readWindows(importer, shape->ints, type.getShape().drop_front(2));
  if (failed(windows))
    return failure();
  return Pool{Term(importer.builder, importer.loc, *x), *windows};
}

/// The windows of `x`, whose own dims come last as one.
Term windowsOf(const Pool &pool, Term x, double outside) {
  Type element = x.getType().getElementType();
  OpBuilder &builder = x.getBuilder();
  TypedAttr value = isa<FloatType>(element) ? TypedAttr(builder.getFloatAttr(element, outside))
                                            : TypedAttr(builder.getIntegerAttr(element, int64_t(outside)));
  return x.with(buildPatches(builder, x.getLoc(), x, pool.windows, value));
}

/// Sum over the dims of the windows.
Term sumWindows(const Pool &pool, Term patches) {
  int64_t rank = patches.getType().getRank();
  return patches.reduce(ReduceKind::sum, dimRange(rank - pool.windows.rank(), rank));
}

/// Which element of the flattened operand is the first largest of each window; columns first within an image where
/// `storage_order` is 1.
Value findPlaces(NodeImporter &importer, const Pool &pool, Value largest) {
  Term first = pool.x.with(buildFirstLargest(importer.builder, importer.loc, pool.x, largest, pool.windows));
  ArrayRef<int64_t> shape = pool.x.getShape();
  int64_t rank = shape.size(), count = countElements(shape);
  auto flat = RankedTensorType::get({count}, importer.builder.getI64Type());
  Term places = pool.x.with(IotaOp::create(importer.builder, importer.loc, flat, 0));
  if (importer.node.intAttribute("storage_order", 0) == 0) {
    places = places.reshape(shape);
  } else {
    SmallVector<int64_t> reversed(shape.take_front(2)), order{0, 1};
    for (int64_t dim = rank - 1; dim > 1; --dim) {
      reversed.push_back(shape[dim]);
      order.push_back(dim);
    }
    SmallVector<int64_t> back(rank);
    for (int64_t dim = 0; dim < rank; ++dim)
      back[order[dim]] = dim;
    places = places.reshape(reversed).transpose(back);
  }
  Term candidates = windowsOf(pool, places, 0).reshape(first.getShape());
  return first.select(candidates, candidates.splat(0)).reduce(ReduceKind::sum, rank);
}

LogicalResult importMaxPool(NodeImporter &importer) {
  FailureOr<Pool> pool = readPool(importer, false);
  if (failed(pool))
    return failure();
  SmallVector<int64_t> shape(pool->x.getShape().take_front(2));
  llvm::append_range(shape, pool->windows.counts(pool->lengths()));
  const Windows &windows = pool->windows;
  Value largest = MaxPoolOp::create(importer.builder, importer.loc, pool->x.getType().clone(shape), pool->x,
                                    windows.size, windows.strides, windows.low, windows.high, windows.dilations);
  if (importer.isUsed(1) && failed(importer.bind(findPlaces(importer, *pool, largest), 1)))
    return failure();
  return importer.bind(largest);
}

/// Number of elements of each window along a dim at positions [begin, end).
std::vector<double> countInside(const Windows &windows, int64_t dim, int64_t count, int64_t begin, int64_t end) {
  std::vector<double> inside;
  for (int64_t index = 0; index < count; ++index) {
    int64_t start = windows.position(dim, index, 0), step = windows.dilations[dim];
    auto elementsBefore = [&](int64_t position) {
      return std::clamp<int64_t>(llvm::divideCeilSigned(position - start, step), 0, windows.size[dim]);
    };
    inside.push_back(double(std::max<int64_t>(elementsBefore(end) - elementsBefore(begin), 1)));
  }
  return inside;
}

/// One over the number of elements that count in each window: those of the operand, and of its padding if `include`;
/// elements that only the ceiling added never count.
FailureOr<Value> buildShares(NodeImporter &importer, const Pool &pool, const Windows &asked, bool include) {
  const Windows &windows = pool.windows;
  SmallVector<int64_t> counts = windows.counts(pool.lengths()), shape(pool.x.getShape().take_front(2));
  llvm::append_range(shape, counts);
  std::vector<std::vector<double>> inside;
  double all = 1;
  for (int64_t dim = 0; dim < windows.rank(); ++dim) {
    if (counts[dim] > foldLimit)
      return importer.unsupported(Twine(counts[dim]) + " windows along dim " + Twine(dim + 2));
    int64_t low = include ? asked.low[dim] : 0, high = include ? asked.high[dim] : 0;
    inside.push_back(countInside(windows, dim, counts[dim], -low, pool.lengths()[dim] + high));
    all *= inside.back().empty() ? 1 : inside.back().front();
  }
  if (llvm::all_of(inside, [](ArrayRef<double> each) { return llvm::all_equal(each); }))
    return Value(importer.splat(pool.x.getType().clone(shape), 1 / all));
  if (countElements(counts) > foldLimit)
    return importer.unsupported("padding and " + Twine(countElements(counts)) + " windows");
  std::vector<double> shares;
  forEachIndex(counts, [&](ArrayRef<int64_t> index) {
    double elements = 1;
    for (int64_t dim = 0; dim < windows.rank(); ++dim)
      elements *= inside[dim][index[dim]];
    shares.push_back(1 / elements);
  });
  FailureOr<Value> known = importer.constant(pool.x.getType().getElementType(), counts, std::move(shares), "shares");
  if (failed(known))
    return failure();
  return Value(pool.x.with(*known).broadcast(dimRange(2, shape.size()), shape));
}

LogicalResult importAveragePool(NodeImporter &importer) {
  FailureOr<Pool> pool = readPool(importer);
  if (failed(pool))
    return failure();
  bool include = importer.node.intAttribute("count_include_pad", 0) != 0;
  Windows asked = pool->windows;
  std::string_view pad = importer.node.stringAttribute("auto_pad", "NOTSET");
  if (pad == "NOTSET" || pad.empty()) {
    FailureOr<Windows> own = readWindows(importer, pool->windows.size);
    if (failed(own))
      return failure();
    asked = *own;
  } else if (pad == "VALID") { // elements that the ceiling added are no padding
    asked.low.assign(asked.rank(), 0);
    asked.high.assign(asked.rank(), 0);
  }
  FailureOr<Value> shares = buildShares(importer, *pool, asked, include);
  if (failed(shares))
    return failure();
  return importer.bind(sumWindows(*pool, windowsOf(*pool, pool->x, 0)) * pool->x.with(*shares));
}

/// x^p of magnitudes, and the p-th root.
Term raise(Term x, double p) { return p == 1 ? x : p == 2 ? x * x : power(x, x.splat(p)); }
Term root(Term x, double p) { return p == 1 ? x : p == 2 ? sqrt(x) : power(x, x.splat(1 / p)); }
Term magnitude(Term x) { return x.with(AbsOp::create(x.getBuilder(), x.getLoc(), x)); }

LogicalResult importLpPool(NodeImporter &importer) {
  FailureOr<Pool> pool = readPool(importer);
  if (failed(pool))
    return failure();
  auto p = double(importer.node.intAttribute("p", 2));
  Term raised = raise(p == 2 ? pool->x : magnitude(pool->x), p);
  return importer.bind(root(sumWindows(*pool, windowsOf(*pool, raised, 0)), p));
}

/// Reduces all spatial dims, which stay with size 1.
template <typename Reduce>
LogicalResult importGlobal(NodeImporter &importer, Reduce reduce) {
  FailureOr<Value> x = spatialOperand(importer);
  if (failed(x))
    return failure();
  Term operand(importer.builder, importer.loc, *x);
  if (!isa<FloatType>(operand.getType().getElementType()))
    return importer.unsupported("integers");
  SmallVector<int64_t> kept(operand.getShape().take_front(2));
  kept.resize(operand.getShape().size(), 1);
  Term reduced = reduce(operand, dimRange(2, kept.size()));
  return importer.bind(reduced.reshape(kept));
}

LogicalResult importGlobalAverage(NodeImporter &importer) {
  return importGlobal(importer, [](Term x, ArrayRef<int64_t> dims) {
    return x.reduce(ReduceKind::sum, dims) * (1.0 / double(countElements(x.getShape().drop_front(2))));
  });
}
LogicalResult importGlobalMax(NodeImporter &importer) {
  return importGlobal(importer, [](Term x, ArrayRef<int64_t> dims) { return x.reduce(ReduceKind::max, dims); });
}
LogicalResult importGlobalLp(NodeImporter &importer) {
  auto p = double(importer.node.intAttribute("p", 2));
  return importGlobal(importer, [=](Term x, ArrayRef<int64_t> dims) {
    return root(raise(p == 2 ? x : magnitude(x), p).reduce(ReduceKind::sum, dims), p);
  });
}

/// Puts each element at the position where the pool found it; all other elements are 0.
LogicalResult importMaxUnpool(NodeImporter &importer) {
  FailureOr<Value> x = spatialOperand(importer), places = importer.tensor(1);
  FailureOr<std::optional<SmallVector<int64_t>>> asked = importer.ints("output_shape", 2);
  const onnx::Attribute *size = importer.node.attribute("kernel_shape");
  if (failed(x) || failed(places) || failed(asked))
    return failure();
  Term operand(importer.builder, importer.loc, *x);
  FailureOr<Windows> windows = failure();
  if (!size || size->ints.size() + 2 != operand.getShape().size())
    return importer.error() << "its kernel_shape does not fit " << operand.getType();
  windows = readWindows(importer, size->ints);
  if (failed(windows))
    return failure();
  SmallVector<int64_t> shape(operand.getShape().take_front(2));
  for (int64_t dim = 0; dim < windows->rank(); ++dim)
    shape.push_back((operand.getShape()[2 + dim] - 1) * windows->strides[dim] + windows->size[dim] - windows->low[dim] -
                    windows->high[dim]);
  int64_t count = countElements(operand.getShape()), all = countElements(shape);
  SmallVector<int64_t> whole = *asked ? **asked : shape, low(shape.size(), 0), high;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (whole.size() != shape.size() || whole[dim] < shape[dim] || shape[dim] < 1)
      return importer.error() << "its output_shape does not fit " << operand.getType();
    else
      high.push_back(whole[dim] - shape[dim]);
  Value spread = IndexAddOp::create(importer.builder, importer.loc, operand.reshape({count}),
                                    operand.with(*places).reshape({count}), 0, all);
  Term result = operand.with(spread).reshape(shape);
  if (whole != shape)
    result = result.with(PadOp::create(importer.builder, importer.loc, result, low, high,
                                       importer.builder.getZeroAttr(operand.getType().getElementType())));
  return importer.bind(result);
}

/// Adds columns, each one window of all channels, to an image.
LogicalResult importCol2Im(NodeImporter &importer) {
  FailureOr<Value> x = spatialOperand(importer);
  FailureOr<std::optional<SmallVector<int64_t>>> image = importer.ints("image_shape", 1),
                                                 block = importer.ints("block_shape", 2);
  if (failed(x) || failed(image) || failed(block))
    return failure();
  Term columns(importer.builder, importer.loc, *x);
  if (!*image || !*block)
    return importer.error() << "has no image_shape or no block_shape";
  FailureOr<Windows> windows = readWindows(importer, **block, **image);
  if (failed(windows))
    return failure();
  int64_t spatial = windows->rank(), elements = windows->elements();
  SmallVector<int64_t> counts = windows->counts(**image);
  ArrayRef<int64_t> shape = columns.getShape();
  if (shape.size() != 3 || shape[1] % elements != 0 || shape[2] != countElements(counts))
    return importer.error() << columns.getType() << " is not " << countElements(counts) << " columns of windows of "
                            << elements;
  SmallVector<int64_t> apart{shape[0], shape[1] / elements}, result(apart);
  llvm::append_range(apart, windows->size);
  llvm::append_range(apart, counts);
  llvm::append_range(result, **image);
  SmallVector<int64_t> order{0, 1};
  llvm::append_range(order, dimRange(2 + spatial, 2 + 2 * spatial));
  llvm::append_range(order, dimRange(2, 2 + spatial));
  Term patches = columns.reshape(apart).transpose(order);
  return importer.bind(FoldPatchesOp::create(importer.builder, importer.loc, columns.getType().clone(result), patches,
                                             windows->strides, windows->low, windows->high, windows->dilations));
}

} // namespace

void addPoolImports(ImportTable &table) {
  table["MaxPool"] = importMaxPool;
  table["AveragePool"] = importAveragePool;
  table["LpPool"] = importLpPool;
  table["GlobalAveragePool"] = importGlobalAverage;
  table["GlobalMaxPool"] = importGlobalMax;
  table["GlobalLpPool"] = importGlobalLp;
  table["MaxUnpool"] = importMaxUnpool;
  table["Col2Im"] = importCol2Im;
}

} // namespace par
