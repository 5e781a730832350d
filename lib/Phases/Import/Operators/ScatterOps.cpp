// Scatters: the operand with updates where indices point, replaced or combined.
#include "Indices.h"
#include "Operands.h"

namespace par {
namespace {

using namespace mlir;

/// The combination of an update with the old element; nothing if it replaces that.
FailureOr<std::optional<ReduceKind>> reductionOf(NodeImporter &importer) {
  StringRef name(importer.node.stringAttribute("reduction", "none"));
  if (name == "none")
    return std::optional<ReduceKind>();
  for (auto [known, kind] : {std::pair("add", ReduceKind::sum), std::pair("mul", ReduceKind::product),
                             std::pair("max", ReduceKind::max), std::pair("min", ReduceKind::min)})
    if (name == known)
      return std::optional(kind);
  return importer.error() << "reduction is \"" << name << "\", expected none, add, mul, max or min";
}

/// Operand, indices and updates of one rank that agree in all dims but `dim` (indices and updates in that, too).
struct Scatter {
  Term operand;
  Value indices, updates;
  int64_t dim;
  bool mayRepeat; ///< whether two indices may point to one place

  int64_t size() const { return operand.getShape()[dim]; }
  Term put(Value values) const {
    return operand.with(ScatterAddOp::create(operand.getBuilder(), operand.getLoc(), values, indices, dim, size()));
  }
  Term put(ReduceKind kind, Value values) const {
    return operand.with(
        ScatterReduceOp::create(operand.getBuilder(), operand.getLoc(), kind, values, indices, dim, size()));
  }
};

/// The last of several updates of one element stays, as in PyTorch (`x[i] = y` and scatter_ on a CPU; ONNX leaves it
/// open).
Value keepLast(const Scatter &scatter) {
  Term operand = scatter.operand;
  OpBuilder &builder = operand.getBuilder();
  auto type = cast<RankedTensorType>(scatter.indices.getType());
  Value number = IotaOp::create(builder, operand.getLoc(), type.clone(builder.getI32Type()), scatter.dim);
  Term last = scatter.put(ReduceKind::max, number); // the smallest number where no index points
  Term isHit = last.compare(Predicate::ge, 0), from = isHit.select(last, last.splat(0));
  Value placed = TakeOp::create(builder, operand.getLoc(), scatter.updates, from, scatter.dim);
  return isHit.select(placed, operand);
}

Value replace(const Scatter &scatter) {
  if (scatter.mayRepeat)
    return keepLast(scatter);
  // At most one update for each element, so a sum with zeros keeps it.
  Term operand = scatter.operand, updates = operand.with(scatter.updates);
  Type element = operand.getType().getElementType(), count = operand.getBuilder().getI32Type();
  Value ones = operand.with(scatter.indices).convert(count).splat(1);
  Term isHit = scatter.put(ones).compare(Predicate::ne, 0);
  bool boolean = element.isInteger(1);
  Term placed = scatter.put(boolean ? updates.convert(count) : updates);
  return isHit.select(boolean ? placed.convert(element) : placed, operand);
}

/// Whether two of the indices of a shape point to one place: known ones say it, of others there is no saying.
bool mayRepeat(const StaticTensor *known, ArrayRef<int64_t> shape, function_ref<int64_t(ArrayRef<int64_t>)> placeOf) {
  if (!known || known->isFloat())
    return true;
  llvm::DenseSet<int64_t> seen;
  bool repeats = false;
  forEachIndex(shape, [&](ArrayRef<int64_t> at) { repeats |= !seen.insert(placeOf(at)).second; });
  return repeats;
}

int64_t knownIndex(const StaticTensor *known, ArrayRef<int64_t> at, int64_t size) {
  return wrapIndex(known->intAt(known->position(at)), size);
}

/// Whether indices of single elements along `dim`, of `size`, may repeat.
bool mayRepeatAlong(const StaticTensor *known, ArrayRef<int64_t> shape, int64_t dim, int64_t size) {
  return shape[dim] > 1 && mayRepeat(known, shape, [&](ArrayRef<int64_t> at) {
           int64_t place = knownIndex(known, at, size);
           for (auto [i, coordinate] : llvm::enumerate(at))
             place = int64_t(i) == dim ? place : place * shape[i] + coordinate;
           return place;
         });
}

/// Whether indices may repeat whose last dim addresses one element of each leading dim of `sizes`.
bool mayRepeatRows(const StaticTensor *known, const RowIndices &rows, ArrayRef<int64_t> sizes) {
  return rows.count > 1 && mayRepeat(known, rows.outer, [&](ArrayRef<int64_t> outer) {
           SmallVector<int64_t> at(outer);
           int64_t place = 0;
           at.push_back(0);
           for (; at.back() < known->getShape().back(); ++at.back())
             place = place * sizes[at.back()] + knownIndex(known, at, sizes[at.back()]);
           return place;
         });
}

Value combine(const Scatter &scatter, std::optional<ReduceKind> kind) {
  if (!kind)
    return replace(scatter);
  Term operand = scatter.operand;
  switch (*kind) {
  case ReduceKind::sum:
    return operand + scatter.put(scatter.updates);
  case ReduceKind::product:
    return operand * scatter.put(*kind, scatter.updates);
  default:
    break;
  }
  // The operand is one of those that are compared: ties then share the cotangent as PyTorch's scatter_reduce does.
  int64_t dim = scatter.dim;
  OpBuilder &builder = operand.getBuilder();
  auto indexType = cast<RankedTensorType>(scatter.indices.getType());
  Value own = IotaOp::create(builder, operand.getLoc(), operand.getType().clone(indexType.getElementType()), dim);
  Value indices = ConcatOp::create(builder, operand.getLoc(), ValueRange{own, scatter.indices}, dim);
  Value updates = ConcatOp::create(builder, operand.getLoc(), ValueRange{operand, scatter.updates}, dim);
  return ScatterReduceOp::create(builder, operand.getLoc(), *kind, updates, indices, dim, scatter.size());
}

/// Replaces x by `updates` from `first` on, along `dim`.
Value placeRun(NodeImporter &importer, Value x, Value updates, int64_t dim, int64_t first) {
  int64_t size = cast<RankedTensorType>(x.getType()).getDimSize(dim);
  int64_t behind = first + cast<RankedTensorType>(updates.getType()).getDimSize(dim);
  SmallVector<Value> parts;
  if (first > 0)
    parts.push_back(importer.slice(x, dim, 0, first));
  parts.push_back(updates);
  if (behind < size)
    parts.push_back(importer.slice(x, dim, behind, size - behind));
  return parts.size() == 1 ? updates : ConcatOp::create(importer.builder, importer.loc, parts, dim).getResult();
}

/// The first position, if the indices of all lines along `dim` are the same consecutive positions.
std::optional<int64_t> findRunAlong(const StaticTensor *known, ArrayRef<int64_t> shape, int64_t dim, int64_t size) {
  if (!known || known->isFloat() || countElements(shape) == 0 || shape[dim] > size)
    return std::nullopt;
  int64_t first = knownIndex(known, SmallVector<int64_t>(shape.size(), 0), size);
  bool follows = true;
  forEachIndex(shape, [&](ArrayRef<int64_t> at) { follows &= knownIndex(known, at, size) == first + at[dim]; });
  return follows ? std::optional(first) : std::nullopt;
}

/// Indices may cover a part of the other dims: that part is scattered into and put back, the rest stays.
LogicalResult importScatterElements(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0), updates = importer.tensor(2);
  if (failed(x) || failed(updates))
    return failure();
  auto type = cast<RankedTensorType>(x->getType()), updateType = cast<RankedTensorType>(updates->getType());
  FailureOr<int64_t> dim = importer.dim("axis", 0, type.getRank());
  FailureOr<std::optional<ReduceKind>> kind = reductionOf(importer);
  if (failed(dim) || failed(kind))
    return failure();
  FailureOr<Value> indices = importIndices(importer, 1, *dim, type.getDimSize(*dim));
  if (failed(indices))
    return failure();
  auto indexType = cast<RankedTensorType>(indices->getType());
  bool fits = indexType.getShape() == updateType.getShape() && indexType.getRank() == type.getRank() &&
              updateType.getElementType() == type.getElementType();
  SmallVector<int64_t> none(type.getRank(), 0), high(type.getRank(), 0);
  Value part = *x;
  for (int64_t i = 0; i < type.getRank() && fits; ++i) {
    fits = i == *dim || indexType.getDimSize(i) <= type.getDimSize(i);
    if (i != *dim && fits) {
      high[i] = type.getDimSize(i) - indexType.getDimSize(i);
      part = importer.slice(part, i, 0, indexType.getDimSize(i));
    }
  }
  if (!fits)
    return importer.error() << "scatters " << updateType << " by " << indexType << " into " << type;
  std::optional<int64_t> first; // `x[:, i] = y`
  if (!*kind)
    first = findRunAlong(importer.known(1), indexType.getShape(), *dim, type.getDimSize(*dim));
  bool repeats = !first && mayRepeatAlong(importer.known(1), indexType.getShape(), *dim, type.getDimSize(*dim));
  Value result = first ? placeRun(importer, part, *updates, *dim, *first)
                       : combine({termOf(importer, part), *indices, *updates, *dim, repeats}, *kind);
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (high[i])
      result = joinRest(importer, result, *x, i);
  return importer.bind(result);
}

/// The first of known consecutive rows of x (`x[..., :n] = y` in PyTorch), if the updates are whole rows.
std::optional<int64_t> findRowRun(const StaticTensor *known, RankedTensorType x, RankedTensorType updates) {
  if (!known || known->getRank() != 2 || known->getShape()[1] != 1 || x.getRank() < 1)
    return std::nullopt;
  std::optional<int64_t> first = findRunAlong(known, known->getShape(), 0, x.getDimSize(0));
  SmallVector<int64_t> expected(x.getShape());
  expected[0] = known->getShape()[0];
  bool fits = first && *first >= 0 && expected[0] <= x.getDimSize(0) - *first && updates == x.clone(expected);
  return fits ? first : std::nullopt;
}

/// updates[i.., r..] go to operand[indices[i.., :], r..]: as rows of one dim that all addressed dims make together.
LogicalResult importScatterNd(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0), updates = importer.tensor(2);
  FailureOr<std::optional<ReduceKind>> kind = reductionOf(importer);
  if (failed(x) || failed(updates) || failed(kind))
    return failure();
  auto type = cast<RankedTensorType>(x->getType()), updateType = cast<RankedTensorType>(updates->getType());
  if (std::optional<int64_t> first = findRowRun(importer.known(1), type, updateType); first && !*kind)
    return importer.bind(placeRun(importer, *x, *updates, 0, *first));
  FailureOr<RowIndices> rows = importRowIndices(importer, 1, type.getShape());
  if (failed(rows))
    return failure();
  SmallVector<int64_t> expected(rows->outer.begin(), rows->outer.end());
  llvm::append_range(expected, type.getShape().drop_front(rows->batch + rows->depth));
  if (updateType != type.clone(expected))
    return importer.error() << "its updates are " << updateType << ", expected " << type.clone(expected);
  // Dims that are not addressed stay dims of their own: one may be the batch.
  SmallVector<int64_t> part = rows->shapeOf(type.getShape(), rows->count);
  Value flat = importer.reshape(*x, rows->shapeOf(type.getShape(), rows->rows)),
        rowUpdates = importer.reshape(*updates, part);
  Value indices = buildBroadcast(importer.builder, importer.loc, rows->indices, dimRange(0, rows->batch + 1), part);
  bool repeats = mayRepeatRows(importer.known(1), *rows, type.getShape());
  Value result = combine({termOf(importer, flat), indices, rowUpdates, rows->batch, repeats}, *kind);
  return importer.bind(importer.reshape(result, type.getShape()));
}

/// Updates a cache along one dim, at a start of its own for every sample.
LogicalResult importTensorScatter(NodeImporter &importer) {
  FailureOr<Value> cache = importer.tensor(0), update = importer.tensor(1);
  if (failed(cache) || failed(update))
    return failure();
  auto type = cast<RankedTensorType>(cache->getType()), updateType = cast<RankedTensorType>(update->getType());
  FailureOr<int64_t> dim = importer.dim("axis", -2, type.getRank());
  if (failed(dim))
    return failure();
  SmallVector<int64_t> expected(type.getShape());
  if (updateType.getRank() == type.getRank())
    expected[*dim] = updateType.getDimSize(*dim);
  if (updateType != type.clone(expected) || *dim == 0 || expected[*dim] > type.getDimSize(*dim))
    return importer.error() << "its update is " << updateType << ", its cache " << type << " along dim " << *dim;
  Type i64 = importer.builder.getI64Type();
  Term index = termOf(importer, IotaOp::create(importer.builder, importer.loc, updateType.clone(i64), *dim));
  if (importer.has(2)) {
    FailureOr<Value> starts = importer.tensor(2);
    if (failed(starts))
      return failure();
    auto startType = cast<RankedTensorType>(starts->getType());
    if (startType.getRank() != 1 || startType.getDimSize(0) != type.getDimSize(0))
      return importer.error() << "its write_indices are " << startType << ", expected one for each of "
                              << type.getDimSize(0);
    index = index + index.with(*starts).convert(i64).broadcast({0}, updateType.getShape());
  }
  if (importer.node.stringAttribute("mode", "linear") == "circular") {
    Term size = index.splat(double(type.getDimSize(*dim)));
    index = index.with(RemainderOp::create(importer.builder, importer.loc, index, size));
  }
  // Consecutive positions, no more than the cache has.
  return importer.bind(combine({termOf(importer, *cache), index, *update, *dim, /*mayRepeat=*/false}, std::nullopt));
}

} // namespace

void addScatterImports(ImportTable &table) {
  table["Scatter"] = importScatterElements;
  table["ScatterElements"] = importScatterElements;
  table["ScatterND"] = importScatterNd;
  table["TensorScatter"] = importTensorScatter;
}

} // namespace par
