// Imports indices of gathers and scatters: negative ones count from the end, and those outside give ONNX's result
// through a mask. Indices proved to be in range, or counted along a dim, get no mask.
#include "Indices.h"

#include "par/Dialect/Indices.h"
#include "par/Dialect/Ranges.h"
#include "par/Dialect/Term.h"

#include <cmath>

namespace par {

using namespace mlir;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

Value countFromEnd(NodeImporter &importer, Value indices, int64_t size) {
  Term index(importer.builder, importer.loc, indices);
  return rangeOf(indices).low >= 0 ? indices : index.compare(Predicate::lt, 0).select(index + double(size), index);
}

/// Whether an op only moves or converts numbers in [0, size).
static bool keepsInside(Operation *op, int64_t size) {
  auto convert = dyn_cast<ConvertOp>(op);
  unsigned width = convert ? convert.getType().getElementTypeBitWidth() : 64;
  bool fits = width > 32 || size <= int64_t(1) << (width - 1);
  return isa<ReshapeOp, SliceOp, TransposeOp>(op) || (keepsIntegers(op) && fits);
}

/// `isReplaced`: a later op has replaced one number by another, so that an earlier replacement may not be in range.
static bool isFed(Value indices, int64_t size, bool isReplaced) {
  while (Operation *op = indices.getDefiningOp()) {
    auto isPart = [&](Value part) { return rangeOf(part).isIn(0, size) || isFed(part, size, isReplaced); };
    if (auto concat = dyn_cast<ConcatOp>(op))
      return llvm::all_of(concat.getOperands(), isPart);
    std::optional<FromEnd> counted = matchFromEnd(indices);
    std::optional<Replaced> replaced = matchReplaced(indices);
    bool keeps = keepsInside(op, size) && !(isReplaced && isa<AndOp>(op));
    if (!counted && !keeps && !(replaced && !isReplaced && rangeOf(replaced->other).isIn(0, size)))
      return false;
    isReplaced |= replaced.has_value();
    indices = counted ? counted->index : replaced ? replaced->index : op->getOperand(0);
  }
  return true;
}

bool isFed(Value indices, int64_t size) { return isFed(indices, size, /*isReplaced=*/false); }

/// Whether each is in [0, size), as i1; null if all are.
static Value findInside(NodeImporter &importer, Value indices, int64_t size) {
  if (isFed(indices, size) || rangeOf(indices).isIn(0, size))
    return Value();
  Term index(importer.builder, importer.loc, indices);
  Value low = index.compare(Predicate::ge, 0), high = index.compare(Predicate::lt, double(size));
  return AndOp::create(importer.builder, importer.loc, low, high);
}

/// The result of a lookup by an index out of range.
static Value buildNothing(NodeImporter &importer, RankedTensorType type) {
  Type element = type.getElementType();
  double nothing = isa<FloatType>(element) ? std::numeric_limits<double>::quiet_NaN()
                   : element.isInteger(1)  ? 0
                                           : -std::ldexp(1.0, int(element.getIntOrFloatBitWidth()) - 1);
  return importer.splat(type, nothing);
}

SmallVector<int64_t> gatheredShape(ArrayRef<int64_t> table, ArrayRef<int64_t> indices, int64_t dim) {
  SmallVector<int64_t> shape(table.take_front(dim));
  llvm::append_range(shape, indices);
  llvm::append_range(shape, table.drop_front(dim + 1));
  return shape;
}

Value gatherAt(NodeImporter &importer, Value table, Value indices, int64_t dim, bool areChecked) {
  RankedTensorType type = typeOf(table), indexType = typeOf(indices);
  SmallVector<int64_t> shape = gatheredShape(type.getShape(), indexType.getShape(), dim);
  Term index(importer.builder, importer.loc, indices);
  Value inside = areChecked ? Value() : findInside(importer, indices, type.getDimSize(dim));
  if (inside)
    index = index.with(inside).select(index, index.splat(0));
  Value found = GatherOp::create(importer.builder, importer.loc, type.clone(shape), table, index, dim);
  if (!inside)
    return found;
  Term here = index.with(inside).broadcast(dimRange(dim, dim + indexType.getRank()), shape);
  return here.select(found, buildNothing(importer, type.clone(shape)));
}

Value takeAt(NodeImporter &importer, Value operand, Value indices, int64_t dim, bool areChecked) {
  RankedTensorType type = typeOf(operand).clone(typeOf(indices).getShape());
  Term index(importer.builder, importer.loc, indices);
  Value inside = areChecked ? Value() : findInside(importer, indices, typeOf(operand).getDimSize(dim));
  if (inside)
    index = index.with(inside).select(index, index.splat(0));
  Value found = TakeOp::create(importer.builder, importer.loc, type, operand, index, dim);
  return inside ? index.with(inside).select(found, buildNothing(importer, type)) : Term(index.with(found));
}

int64_t wrapIndex(int64_t index, int64_t size) { return index < 0 ? index + size : index; }

FailureOr<StaticTensor> wrapKnown(NodeImporter &importer, const StaticTensor &known, int64_t dim, int64_t size) {
  StaticTensor wrapped = known;
  for (int64_t i = 0; i < wrapped.getStoredCount(); ++i) {
    int64_t index = wrapped.intAt(i);
    if (index < -size || index >= size)
      return importer.error() << "index " << index << " of dim " << dim << ", which has " << size;
    wrapped.setInt(i, wrapIndex(index, size));
  }
  return wrapped;
}

static LogicalResult checkIntegers(NodeImporter &importer, RankedTensorType type) {
  if (!isa<IntegerType>(type.getElementType()) || type.getElementType().isInteger(1))
    return importer.error() << "its indices are " << type << ", expected integers";
  return success();
}

FailureOr<Value> importIndices(NodeImporter &importer, size_t i, int64_t dim, int64_t size) {
  FailureOr<RankedTensorType> type = importer.type(i);
  if (failed(type) || failed(checkIntegers(importer, *type)))
    return failure();
  if (const StaticTensor *known = importer.known(i)) {
    FailureOr<StaticTensor> wrapped = wrapKnown(importer, *known, dim, size);
    return failed(wrapped) ? FailureOr<Value>(failure()) : importer.knownAs(i, *wrapped);
  }
  FailureOr<Value> indices = importer.tensor(i);
  if (failed(indices))
    return failure();
  return countFromEnd(importer, *indices, size);
}

/// Constants of at most this many elements are looked at.
static constexpr int64_t lookLimit = 1 << 16;

static bool countsAlong(Value value, int64_t dim, int64_t column);

/// The same with the last dim's index fixed, of numbers known when compiling.
static bool constantCounts(DenseIntElementsAttr numbers, int64_t dim, int64_t column) {
  auto shape = cast<RankedTensorType>(numbers.getType()).getShape();
  if (countElements(shape) > lookLimit)
    return false;
  auto next = numbers.getValues<APInt>().begin();
  bool counts = true;
  forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    int64_t number = (*next++).getSExtValue();
    counts &= number == index[dim] || (column >= 0 && index.back() != column);
  });
  return counts;
}

/// The position of `dim` in another shape that differs only in dims of size 1; nothing for other shapes.
static std::optional<int64_t> sameDim(ArrayRef<int64_t> from, ArrayRef<int64_t> to, int64_t dim) {
  auto isLarge = [](int64_t size) { return size != 1; };
  if (!llvm::equal(llvm::make_filter_range(from, isLarge), llvm::make_filter_range(to, isLarge)) || from[dim] == 1)
    return std::nullopt;
  int64_t before = llvm::count_if(from.take_front(dim), isLarge);
  for (auto [i, size] : llvm::enumerate(to))
    if (isLarge(size) && before-- == 0)
      return i;
  return std::nullopt;
}

/// Whether every element of a broadcast (at `column` of the last dim unless that is negative) is its index along `dim`.
static bool broadcastCounts(BroadcastInDimOp broadcast, int64_t dim, int64_t column) {
  int64_t last = typeOf(broadcast).getRank() - 1;
  for (auto [from, to] : llvm::enumerate(broadcast.getDims()))
    if (to == dim && typeOf(broadcast.getOperand()).getDimSize(from) == typeOf(broadcast).getDimSize(dim)) {
      bool keepsColumn = broadcast.getDims().back() == last;
      return countsAlong(broadcast.getOperand(), from, keepsColumn ? column : -1);
    }
  return false;
}

/// Whether each element of `value` (at `column` of the last dim unless that is negative) is its index along `dim`.
static bool countsAlong(Value value, int64_t dim, int64_t column) {
  int64_t last = typeOf(value).getRank() - 1;
  if (last < 0 || typeOf(value).getDimSize(last) == 1)
    column = -1;
  Operation *op = value.getDefiningOp();
  if (auto concat = dyn_cast_or_null<ConcatOp>(op)) {
    if (column < 0 || int64_t(concat.getDim()) != last)
      return false;
    for (Value operand : concat.getOperands()) {
      int64_t size = typeOf(operand).getDimSize(last);
      if (column < size)
        return countsAlong(operand, dim, column);
      column -= size;
    }
    return false;
  }
  if (auto iota = dyn_cast_or_null<IotaOp>(op))
    return int64_t(iota.getDim()) == dim;
  if (auto convert = dyn_cast_or_null<ConvertOp>(op))
    return isa<IntegerType>(typeOf(convert.getOperand()).getElementType()) &&
           countsAlong(convert.getOperand(), dim, column);
  if (auto broadcast = dyn_cast_or_null<BroadcastInDimOp>(op))
    return broadcastCounts(broadcast, dim, column);
  if (auto reshape = dyn_cast_or_null<ReshapeOp>(op)) {
    std::optional<int64_t> from = sameDim(typeOf(value).getShape(), typeOf(reshape.getOperand()).getShape(), dim);
    return from && column < 0 && countsAlong(reshape.getOperand(), *from, -1);
  }
  auto constant = dyn_cast_or_null<ConstantOp>(op);
  auto numbers = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
  return numbers && constantCounts(numbers, dim, column);
}

SmallVector<int64_t> RowIndices::shapeOf(ArrayRef<int64_t> shape, int64_t along) const {
  SmallVector<int64_t> result(shape.take_front(batch));
  result.push_back(along);
  llvm::append_range(result, shape.drop_front(batch + depth));
  return result;
}

/// Checks that each column of known indices is in its dim of `shape`.
static LogicalResult checkColumns(NodeImporter &importer, const StaticTensor &known, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> sizes = shape.take_front(known.getShape().back());
  bool ofAll = known.getStored().back() == 1; // one number for all columns
  LogicalResult fits = success();
  forEachIndex(known.getStored(), [&](ArrayRef<int64_t> at) {
    int64_t index = known.intAt(known.position(at)), size = ofAll ? *llvm::min_element(sizes) : sizes[at.back()];
    if (succeeded(fits) && (index < -size || index >= size))
      fits = importer.error() << "index " << index << " of a dim that has " << size;
  });
  return fits;
}

FailureOr<RowIndices> importRowIndices(NodeImporter &importer, size_t i, ArrayRef<int64_t> shape, int64_t batch) {
  FailureOr<Value> indices = importer.tensor(i);
  if (failed(indices))
    return failure();
  RankedTensorType type = typeOf(*indices);
  if (failed(checkIntegers(importer, type)))
    return failure();
  int64_t last = type.getRank() - 1;
  bool fits = last >= batch && batch >= 0 && type.getDimSize(last) >= 1 &&
              type.getDimSize(last) + batch <= int64_t(shape.size()) &&
              type.getShape().take_front(batch) == shape.take_front(batch);
  if (!fits)
    return importer.error() << "its indices are " << type << ", which do not address a tensor of rank " << shape.size()
                            << " after " << batch << " batch dims";
  int64_t columns = type.getDimSize(last), counted = 0;
  while (counted + 1 < columns && batch + counted < last &&
         type.getDimSize(batch + counted) == shape[batch + counted] && countsAlong(*indices, batch + counted, counted))
    ++counted;
  RowIndices rows;
  const std::shared_ptr<const StaticTensor> &given = importer.value(i)->known; // known without being small, too
  rows.known = given != nullptr;
  if (given && failed(checkColumns(importer, *given, shape.drop_front(batch))))
    return failure();
  rows.batch = batch + counted;
  rows.outer.assign(type.getShape().begin(), type.getShape().end() - 1);
  rows.depth = columns - counted;
  rows.count = countElements(ArrayRef(rows.outer).drop_front(rows.batch));
  Term sum = Term(importer.builder, importer.loc, *indices).convert(importer.builder.getI64Type()), row = sum;
  Value inside;
  for (int64_t k = 0; k < rows.depth; ++k) {
    int64_t size = shape[rows.batch + k];
    Term column = sum.with(importer.reshape(importer.slice(sum, last, counted + k, 1), rows.outer));
    column = column.with(countFromEnd(importer, column, size));
    if (Value here = rows.known || rows.depth == 1 ? Value() : findInside(importer, column, size))
      inside = inside ? AndOp::create(importer.builder, importer.loc, inside, here).getResult() : here;
    row = k == 0 ? column : row * double(size) + column;
    rows.rows *= size;
  }
  if (inside) // a place beyond its dim would be one of another row
    row = row.with(inside).select(row, row.splat(-1));
  SmallVector<int64_t> flat(shape.take_front(rows.batch));
  flat.push_back(rows.count);
  rows.indices = importer.reshape(row, flat);
  return rows;
}

Value joinRest(NodeImporter &importer, Value part, Value whole, int64_t dim) {
  auto type = cast<RankedTensorType>(part.getType());
  int64_t size = cast<RankedTensorType>(whole.getType()).getDimSize(dim), have = type.getDimSize(dim);
  if (have == size)
    return part;
  for (int64_t i = 0; i < type.getRank(); ++i)
    whole = i == dim ? importer.slice(whole, i, have, size - have) : importer.slice(whole, i, 0, type.getDimSize(i));
  return ConcatOp::create(importer.builder, importer.loc, ValueRange{part, whole}, dim);
}

} // namespace par
