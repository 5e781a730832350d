// Gathers.
#include "ApplyMarks.h"
#include "Indices.h"
#include "par/Dialect/Term.h"

namespace par {
namespace {

using namespace mlir;

/// first, first + 1, ...: a gather by these is a slice. Nothing if the indices are not such.
std::optional<int64_t> findRun(ArrayRef<int64_t> indices) {
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] != indices[0] + int64_t(i))
      return std::nullopt;
  return indices.empty() ? std::nullopt : std::optional<int64_t>(indices[0]);
}

LogicalResult importGather(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  FailureOr<RankedTensorType> indexType = importer.type(1);
  if (failed(x) || failed(indexType))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<int64_t> dim = importer.dim("axis", 0, type.getRank());
  if (failed(dim))
    return failure();
  if (!isa<IntegerType>(indexType->getElementType()) || indexType->getElementType().isInteger(1))
    return importer.error() << "its indices are " << *indexType << ", expected integers";
  int64_t size = type.getDimSize(*dim);
  std::optional<int64_t> first; // of a run of rows
  FailureOr<Value> indices;
  if (const StaticTensor *known = importer.known(1)) {
    FailureOr<StaticTensor> wrapped = wrapKnown(importer, *known, *dim, size);
    if (failed(wrapped))
      return failure();
    if (wrapped->getElements() <= foldLimit)
      first = findRun(wrapped->toInts());
    indices = first && !importer.embeddingMark() ? Value() : importer.knownAs(1, *wrapped);
  } else if (indices = importer.tensor(1); succeeded(indices)) {
    // ONNX lets an index count from the end. Ids that are fed to a table of parameters do not.
    if (!isFed(*indices, size) || !x->getDefiningOp<ReadOp>())
      indices = countFromEnd(importer, *indices, size);
  }
  if (failed(indices))
    return failure();
  // Positions 0..31 of a table are its first 32 rows: no lookup, and its gradient no scatter.
  SmallVector<int64_t> shape = gatheredShape(type.getShape(), indexType->getShape(), *dim);
  Value rows = first ? importer.reshape(importer.slice(*x, *dim, *first, countElements(indexType->getShape())), shape)
                     : gatherAt(importer, *x, *indices, *dim, /*areChecked=*/importer.known(1));
  FailureOr<Value> marked = markEmbedding(importer, rows, *indices, *dim, size);
  return failed(marked) ? failure() : importer.bind(*marked);
}

LogicalResult importGatherElements(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<int64_t> dim = importer.dim("axis", 0, type.getRank());
  FailureOr<Value> indices =
      failed(dim) ? FailureOr<Value>(failure()) : importIndices(importer, 1, *dim, type.getDimSize(*dim));
  if (failed(indices))
    return failure();
  auto indexType = cast<RankedTensorType>(indices->getType());
  bool fits = indexType.getRank() == type.getRank();
  Value part = *x;
  for (int64_t i = 0; i < type.getRank() && fits; ++i) {
    fits = i == *dim || indexType.getDimSize(i) <= type.getDimSize(i);
    if (i != *dim && fits)
      part = importer.slice(part, i, 0, indexType.getDimSize(i));
  }
  if (!fits)
    return importer.error() << "its indices are " << indexType << ", the operand " << type;
  return importer.bind(takeAt(importer, part, *indices, *dim, /*areChecked=*/importer.known(1)));
}

/// Which dim of the indices tensor column `k` counts along (it holds 0, 1, 2, ... there and nothing else changes it);
/// -1 if it does not count.
int64_t countedDim(const StaticTensor &indices, int64_t k) {
  int64_t outer = indices.getRank() - 1, found = -1;
  Shape zero(indices.getRank(), 0);
  for (int64_t dim = 0; dim < outer && found < 0; ++dim) {
    bool counts = indices.getShape()[dim] > 1;
    forEachIndex(indices.getStored(), [&](ArrayRef<int64_t> index) {
      if (index.back() == (indices.getStored().back() == 1 ? 0 : k))
        counts &= indices.intAt(indices.position(index)) == index[dim] && indices.getStored()[dim] != 1;
    });
    found = counts ? dim : -1;
  }
  return found;
}

/// A GatherND each of whose known columns counts along a dim of its own takes every row in order: it only moves dims
/// (`mask[arange(b), arange(k)]` of BERT). So the batch stays a parallel dim.
LogicalResult importRanges(NodeImporter &importer, const StaticTensor *indices, bool &done) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  if (!indices || importer.node.intAttribute("batch_dims", 0) != 0 || indices->getRank() < 1 ||
      indices->getShape().back() > type.getRank())
    return success();
  int64_t depth = indices->getShape().back(), outer = indices->getRank() - 1;
  SmallVector<int64_t> order(type.getRank(), -1), shape(indices->getShape().drop_back()), broadcastDims;
  SmallVector<std::pair<int64_t, int64_t>> places; // (dim of the result, dim of x)
  for (int64_t k = 0; k < depth; ++k) {
    int64_t dim = countedDim(*indices, k);
    if (dim < 0 || indices->getShape()[dim] != type.getDimSize(k) ||
        llvm::any_of(places, [&](auto place) { return place.first == dim; }))
      return success();
    places.push_back({dim, k});
  }
  for (int64_t i = depth; i < type.getRank(); ++i) {
    places.push_back({outer + i - depth, i});
    shape.push_back(type.getDimSize(i));
  }
  llvm::sort(places);
  order.clear();
  for (auto [to, from] : places) {
    order.push_back(from);
    broadcastDims.push_back(to);
  }
  done = true;
  Value moved = importer.transpose(*x, order);
  if (cast<RankedTensorType>(moved.getType()).getShape() == ArrayRef(shape))
    return importer.bind(moved);
  return importer.bind(buildBroadcast(importer.builder, importer.loc, moved, broadcastDims, shape));
}

/// x[b.., indices[b.., i.., :], r..]: rows of the addressed dims taken as one.
LogicalResult importGatherNd(NodeImporter &importer) {
  // Indices may be known without being small.
  const GraphValue *given = importer.value(1);
  bool done = false;
  if (failed(importRanges(importer, given ? given->known.get() : nullptr, done)) || done)
    return success(done);
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  int64_t batch = importer.node.intAttribute("batch_dims", 0);
  if (batch < 0 || batch >= type.getRank())
    return importer.error() << "batch_dims is " << batch << ", the operand has rank " << type.getRank();
  FailureOr<RowIndices> rows = importRowIndices(importer, 1, type.getShape(), batch);
  if (failed(rows))
    return failure();
  SmallVector<int64_t> shape(rows->outer.begin(), rows->outer.end());
  llvm::append_range(shape, type.getShape().drop_front(rows->batch + rows->depth));
  Value flat = importer.reshape(*x, rows->shapeOf(type.getShape(), rows->rows));
  if (rows->batch == 0) {
    Value picked = gatherAt(importer, flat, rows->indices, 0, rows->known);
    return importer.bind(importer.reshape(picked, shape));
  }
  // Every sample has separate indices.
  Value indices = buildBroadcast(importer.builder, importer.loc, rows->indices, dimRange(0, rows->batch + 1),
                                 rows->shapeOf(type.getShape(), rows->count));
  Value picked = takeAt(importer, flat, indices, rows->batch, rows->known);
  return importer.bind(importer.reshape(picked, shape));
}

} // namespace

void addIndexImports(ImportTable &table) {
  table["Gather"] = importGather;
  table["GatherElements"] = importGatherElements;
  table["GatherND"] = importGatherNd;
}

} // namespace par
