#include "Indices.h"

#include "par/Dialect/Term.h"

namespace par {

using namespace mlir;

static Value wrapNegative(NodeImporter &importer, Value indices, int64_t size) {
  Term index(importer.builder, importer.loc, indices);
  return index.compare(Predicate::lt, 0).select(index + double(size), index);
}

/// The known input i with every index in [0, size).
static FailureOr<StaticTensor> wrapKnown(NodeImporter &importer, const StaticTensor &known, int64_t size) {
  StaticTensor wrapped = known;
  for (int64_t i = 0; i < wrapped.getStoredCount(); ++i) {
    int64_t index = wrapped.intAt(i);
    if (index < -size || index >= size)
      return importer.error() << "index " << index << " of a dim that has " << size;
    wrapped.setInt(i, index < 0 ? index + size : index);
  }
  return wrapped;
}

static LogicalResult checkIntegers(NodeImporter &importer, RankedTensorType type) {
  if (!isa<IntegerType>(type.getElementType()) || type.getElementType().isInteger(1))
    return importer.error() << "its indices are " << type << ", expected integers";
  return success();
}

FailureOr<Value> importIndices(NodeImporter &importer, size_t i, int64_t size) {
  FailureOr<RankedTensorType> type = importer.type(i);
  if (failed(type) || failed(checkIntegers(importer, *type)))
    return failure();
  if (const StaticTensor *known = importer.known(i)) {
    FailureOr<StaticTensor> wrapped = wrapKnown(importer, *known, size);
    return failed(wrapped) ? FailureOr<Value>(failure()) : importer.knownAs(i, *wrapped);
  }
  FailureOr<Value> indices = importer.tensor(i);
  if (failed(indices))
    return failure();
  return wrapNegative(importer, *indices, size);
}

FailureOr<RowIndices> importRowIndices(NodeImporter &importer, size_t i, ArrayRef<int64_t> shape, int64_t batch) {
  FailureOr<Value> indices = importer.tensor(i);
  if (failed(indices))
    return failure();
  auto type = cast<RankedTensorType>(indices->getType());
  if (failed(checkIntegers(importer, type)))
    return failure();
  int64_t last = type.getRank() - 1;
  bool fits = last >= batch && batch >= 0 && type.getDimSize(last) >= 1 &&
              type.getDimSize(last) + batch <= int64_t(shape.size()) &&
              type.getShape().take_front(batch) == shape.take_front(batch);
  if (!fits)
    return importer.error() << "its indices are " << type << ", which do not address a tensor of rank " << shape.size()
                            << " behind " << batch << " batch dims";
  RowIndices rows;
  rows.outer.assign(type.getShape().begin(), type.getShape().end() - 1);
  rows.depth = type.getDimSize(last);
  rows.count = countElements(ArrayRef(rows.outer).drop_front(batch));
  Term sum = Term(importer.builder, importer.loc, *indices).convert(importer.builder.getI64Type()), row = sum;
  for (int64_t k = 0; k < rows.depth; ++k) {
    int64_t size = shape[batch + k];
    Term column = sum.with(importer.reshape(importer.slice(sum, last, k, 1), rows.outer));
    column = column.with(wrapNegative(importer, column, size));
    row = k == 0 ? column : row * double(size) + column;
    rows.rows *= size;
  }
  SmallVector<int64_t> flat(shape.take_front(batch));
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
