// Evaluates ONNX operators that gather elements of known tensors at known indices.
#include "par/Phases/Import/Fold.h"

namespace par {
namespace {

using llvm::ArrayRef;
using llvm::failure;
using llvm::FailureOr;

FailureOr<StaticTensor> foldGather(const FoldContext &context) {
  const StaticTensor *data = context.input(0), *indices = context.input(1);
  if (!data || !indices)
    return failure();
  FailureOr<int64_t> dim = normalizeDim(context.node.intAttribute("axis", 0), data->getRank());
  if (failed(dim))
    return failure();
  // Result dims: data[:dim], indices, data[dim + 1:]; dims stored once in an operand are stored once here.
  Shape shape(data->getShape().take_front(*dim)), stored(data->getStored().take_front(*dim));
  llvm::append_range(shape, indices->getShape());
  llvm::append_range(stored, indices->getStored());
  llvm::append_range(shape, data->getShape().drop_front(*dim + 1));
  llvm::append_range(stored, data->getStored().drop_front(*dim + 1));
  if (countElements(stored) > foldLimit)
    return failure();
  StaticTensor result(data->getType(), shape, stored);
  bool inRange = true;
  int64_t at = 0, size = data->getShape()[*dim];
  forEachIndex(stored, [&](ArrayRef<int64_t> index) {
    int64_t row = indices->intAt(indices->position(index.slice(*dim, indices->getRank())));
    row = row < 0 ? row + size : row;
    Shape from(index.take_front(*dim));
    from.push_back(row);
    llvm::append_range(from, index.drop_front(*dim + indices->getRank()));
    inRange &= row >= 0 && row < size;
    if (inRange)
      result.copy(at++, *data, data->position(from));
  });
  if (!inRange)
    return failure();
  return result;
}

/// result[b.., i..] = data[b.., indices[b.., i.., :]]; indices name leading dims of data after the batch dims.
FailureOr<StaticTensor> foldGatherNd(const FoldContext &context) {
  const StaticTensor *data = context.input(0), *indices = context.input(1);
  int64_t batch = context.node.intAttribute("batch_dims", 0);
  if (!data || !indices || indices->getRank() < 1 || batch < 0 || batch >= indices->getRank())
    return failure();
  int64_t depth = indices->getShape().back(), outer = indices->getRank() - 1;
  if (batch + depth > data->getRank())
    return failure();
  Shape shape(indices->getShape().drop_back()), stored(indices->getStored().drop_back());
  for (int64_t i = 0; i < batch; ++i)
    stored[i] = shape[i];
  llvm::append_range(shape, data->getShape().drop_front(batch + depth));
  llvm::append_range(stored, data->getStored().drop_front(batch + depth));
  if (countElements(stored) > foldLimit)
    return failure();
  StaticTensor result(data->getType(), shape, stored);
  bool inRange = true;
  int64_t at = 0;
  forEachIndex(stored, [&](ArrayRef<int64_t> index) {
    Shape from(index.take_front(batch)), where(index.take_front(outer));
    where.push_back(0);
    for (int64_t i = 0; i < depth; ++i) {
      where.back() = i;
      int64_t size = data->getShape()[batch + i], at = indices->intAt(indices->position(where));
      from.push_back(at < 0 ? at + size : at);
      inRange &= from.back() >= 0 && from.back() < size;
    }
    llvm::append_range(from, index.drop_front(outer));
    if (inRange)
      result.copy(at++, *data, data->position(from));
  });
  if (!inRange)
    return failure();
  return result;
}

FailureOr<StaticTensor> foldGatherElements(const FoldContext &context) {
  const StaticTensor *data = context.input(0), *indices = context.input(1);
  if (!data || !indices || data->getRank() != indices->getRank() || indices->getElements() > foldLimit)
    return failure();
  FailureOr<int64_t> dim = normalizeDim(context.node.intAttribute("axis", 0), data->getRank());
  if (failed(dim))
    return failure();
  for (int64_t i = 0; i < data->getRank(); ++i)
    if (i != *dim && indices->getShape()[i] > data->getShape()[i])
      return failure();
  StaticTensor result(data->getType(), indices->getShape(), indices->getShape());
  bool inRange = true;
  int64_t at = 0, size = data->getShape()[*dim];
  forEachIndex(indices->getShape(), [&](ArrayRef<int64_t> index) {
    Shape from(index);
    int64_t row = indices->intAt(indices->position(index));
    from[*dim] = row < 0 ? row + size : row;
    inRange &= from[*dim] >= 0 && from[*dim] < size;
    if (inRange)
      result.copy(at++, *data, data->position(from));
  });
  if (!inRange)
    return failure();
  return result;
}

/// Whether every index of a column is one of a dim of `size`, counted from either end.
bool isWithin(const StaticTensor &columns, int64_t column, int64_t size) {
  int64_t kept = columns.getStored().back();
  for (int64_t i = kept == 1 ? 0 : column; i < columns.getStoredCount(); i += kept)
    if (int64_t index = columns.intAt(i); index < -size || index >= size)
      return false;
  return true;
}

/// Shape of what Concat makes along the last dim; fails if it is not that dim, or the inputs do not fit together.
FailureOr<Shape> joinedShape(const onnx::Node &concat, ArrayRef<const StaticTensor *> columns) {
  if (columns.empty() || llvm::is_contained(columns, nullptr) || columns[0]->getRank() < 1)
    return failure();
  Shape shape(columns[0]->getShape());
  FailureOr<int64_t> dim = normalizeDim(concat.intAttribute("axis", 0), shape.size());
  if (failed(dim) || *dim != int64_t(shape.size()) - 1)
    return failure();
  for (const StaticTensor *part : columns.drop_front()) {
    if (part->getType() != columns[0]->getType() || part->getRank() != int64_t(shape.size()) ||
        part->getShape().drop_back() != ArrayRef<int64_t>(shape).drop_back())
      return failure();
    shape.back() += part->getShape().back();
  }
  return shape;
}

} // namespace

FailureOr<StaticTensor> gatherByColumns(const onnx::Node &gather, const StaticTensor *data, const onnx::Node &concat,
                                        ArrayRef<const StaticTensor *> parts) {
  FailureOr<Shape> indices = joinedShape(concat, parts);
  if (failed(indices) || !data || countElements(*indices) == 0)
    return failure();
  int64_t batch = gather.intAttribute("batch_dims", 0), outer = indices->size() - 1, depth = indices->back();
  if (batch < 0 || batch > outer || batch + depth > data->getRank())
    return failure();
  Shape shape(ArrayRef<int64_t>(*indices).drop_back()), stored(outer, 1);
  for (int64_t i = 0; i < batch; ++i)
    stored[i] = data->getStored()[i] == 1 ? 1 : shape[i];
  // A column matters where elements change along its dim.
  llvm::SmallVector<std::pair<const StaticTensor *, int64_t>> columns;
  for (const StaticTensor *part : parts)
    for (int64_t column = 0; column < part->getShape().back(); ++column) {
      int64_t dim = batch + int64_t(columns.size());
      if (!isWithin(*part, column, data->getShape()[dim]))
        return failure();
      columns.push_back({part, column});
      for (int64_t i = 0; i < outer && data->getStored()[dim] != 1; ++i)
        stored[i] = part->getStored()[i] == 1 ? stored[i] : shape[i];
    }
  llvm::append_range(shape, data->getShape().drop_front(batch + depth));
  llvm::append_range(stored, data->getStored().drop_front(batch + depth));
  if (countElements(stored) > foldLimit)
    return failure();
  StaticTensor result(data->getType(), shape, stored);
  int64_t at = 0;
  forEachIndex(stored, [&](ArrayRef<int64_t> index) {
    Shape from(index.take_front(batch)), where(index.take_front(outer));
    where.push_back(0);
    for (auto [part, column] : columns) {
      where.back() = column;
      int64_t size = data->getShape()[from.size()], row = part->intAt(part->position(where));
      from.push_back(row < 0 ? row + size : row);
    }
    llvm::append_range(from, index.drop_front(outer));
    result.copy(at++, *data, data->position(from));
  });
  result.compact();
  return result;
}

void addIndexFolds(FoldTable &table) {
  table["Gather"] = foldGather;
  table["GatherND"] = foldGatherNd;
  table["GatherElements"] = foldGatherElements;
}

} // namespace par
