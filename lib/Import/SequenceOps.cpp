// Sequences and splits: they are dissolved into slices, and no value of the IR is a sequence.
#include "GraphImporter.h"

namespace par {
namespace {

using namespace mlir;

/// Sizes of the parts along a dim: equal ones of `size` with a smaller last one, or the ones given.
FailureOr<SmallVector<int64_t>> partSizes(NodeImporter &importer, int64_t total, ArrayRef<int64_t> given, bool isScalar) {
  SmallVector<int64_t> sizes;
  if (isScalar) {
    if (given.size() != 1 || given[0] <= 0)
      return importer.error() << "splits " << total << " elements into parts of " << (given.empty() ? 0 : given[0]);
    for (int64_t at = 0; at < total; at += given[0])
      sizes.push_back(std::min(given[0], total - at));
    return sizes;
  }
  int64_t sum = 0;
  for (int64_t size : given) {
    if (size < 0 || size > total)
      return importer.error() << "splits " << total << " elements into a part of " << size;
    sizes.push_back(size);
    sum += size;
  }
  if (sum != total)
    return importer.error() << "splits " << total << " elements into parts of " << sum << " altogether";
  return sizes;
}

SmallVector<Value> cut(NodeImporter &importer, Value x, int64_t dim, ArrayRef<int64_t> sizes) {
  SmallVector<Value> parts;
  int64_t at = 0;
  for (int64_t size : sizes) {
    parts.push_back(importer.slice(x, dim, at, size));
    at += size;
  }
  return parts;
}

LogicalResult importSplitToSequence(NodeImporter &importer) {
  FailureOr<std::optional<SmallVector<int64_t>>> split = importer.ints("split", 1);
  FailureOr<Value> x = failed(split) ? FailureOr<Value>(failure()) : importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<int64_t> dim = importer.dim("axis", 0, type.getRank());
  if (failed(dim))
    return failure();
  int64_t one = 1;
  bool isScalar = !*split || importer.known(1)->getRank() == 0;
  FailureOr<SmallVector<int64_t>> sizes =
      partSizes(importer, type.getDimSize(*dim), *split ? ArrayRef<int64_t>(**split) : ArrayRef(one), isScalar);
  if (failed(sizes))
    return failure();
  std::vector<GraphValue> parts;
  for (Value part : cut(importer, *x, *dim, *sizes)) {
    if (!*split && importer.node.intAttribute("keepdims", 1) == 0) {
      SmallVector<int64_t> shape(type.getShape());
      shape.erase(shape.begin() + *dim);
      part = importer.reshape(part, shape);
    }
    parts.push_back({nullptr, part, {}, false});
  }
  return importer.bindSequence(std::move(parts));
}

LogicalResult importSequenceAt(NodeImporter &importer) {
  const GraphValue *sequence = importer.value(0);
  const StaticTensor *position = importer.known(1);
  if (!sequence || !sequence->isSequence || !position || position->getElements() != 1)
    return importer.error() << "its inputs are not a sequence and a known position";
  int64_t size = sequence->sequence.size(), at = position->intAt(0);
  FailureOr<int64_t> index = normalizeDim(at, size);
  if (failed(index))
    return importer.error() << "position " << at << " of a sequence of " << size;
  return importer.bind(sequence->sequence[*index].computed); // SplitToSequence makes values, never constants
}

LogicalResult importSplit(NodeImporter &importer) {
  FailureOr<std::optional<SmallVector<int64_t>>> split = importer.ints("split", 1);
  FailureOr<Value> x = failed(split) ? FailureOr<Value>(failure()) : importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<int64_t> dim = importer.dim("axis", 0, type.getRank());
  if (failed(dim))
    return failure();
  int64_t total = type.getDimSize(*dim), count = importer.node.outputs.size();
  int64_t equal = (total + count - 1) / count;
  FailureOr<SmallVector<int64_t>> sizes = partSizes(
      importer, total, *split ? ArrayRef<int64_t>(**split) : ArrayRef(equal), !*split);
  if (failed(sizes))
    return failure();
  if (int64_t(sizes->size()) != count)
    return importer.error() << "splits " << total << " elements into " << sizes->size() << " parts, and has " << count
                            << " outputs";
  for (auto [k, part] : llvm::enumerate(cut(importer, *x, *dim, *sizes)))
    if (failed(importer.bind(part, k)))
      return failure();
  return success();
}

} // namespace

void addSequenceImports(ImportTable &table) {
  table["SplitToSequence"] = importSplitToSequence;
  table["SequenceAt"] = importSequenceAt;
  table["Split"] = importSplit;
}

} // namespace par
