// Sequences and splits: they are dissolved into slices, and no value of the IR is a sequence.
#include "../Graph/GraphImporter.h"

namespace par {
namespace {

using namespace mlir;

/// Sizes of the parts along a dim: equal ones of `size` with a smaller last one, or the ones given.
FailureOr<SmallVector<int64_t>> partSizes(NodeImporter &importer, int64_t total, ArrayRef<int64_t> given,
                                          bool isScalar) {
  SmallVector<int64_t> sizes;
  if (isScalar) {
    if (given.size() != 1 || given[0] <= 0)
      return importer.error() << "splits " << total << " elements into parts of " << (given.empty() ? 0 : given[0]);
    if (failed(importer.unroll(llvm::divideCeilSigned(total, given[0]), 2)))
      return failure();
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
  bool isScalar = !*split || (importer.has(1) && importer.known(1)->getRank() == 0);
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
  GraphValue element = sequence->sequence[*index];
  return importer.bindValue(std::move(element));
}

LogicalResult importSequenceEmpty(NodeImporter &importer) { return importer.bindSequence({}); }

LogicalResult importSequenceConstruct(NodeImporter &importer) {
  std::vector<GraphValue> elements;
  for (size_t i = 0; i < importer.numInputs(); ++i) {
    if (failed(importer.type(i)))
      return failure();
    elements.push_back(*importer.value(i));
  }
  return importer.bindSequence(std::move(elements));
}

/// A known position in a sequence, the last one if it is left out; an insertion may be after the last.
FailureOr<size_t> positionIn(NodeImporter &importer, size_t input, int64_t size, bool inserts) {
  int64_t at = inserts ? size : size - 1;
  if (importer.has(input)) {
    const StaticTensor *position = importer.known(input);
    if (!position || position->getElements() != 1)
      return importer.error() << "its position depends on data, which an ahead-of-time program cannot hold";
    at = position->intAt(0);
  }
  int64_t places = inserts ? size + 1 : size, wrapped = at < 0 ? at + size : at;
  if (wrapped < 0 || wrapped >= places)
    return importer.error() << "position " << at << " of a sequence of " << size;
  return size_t(wrapped);
}

/// The sequence that input 0 is; fails with an error if it is none.
FailureOr<std::vector<GraphValue>> sequenceOf(NodeImporter &importer) {
  const GraphValue *sequence = importer.value(0);
  if (!sequence || !sequence->isSequence)
    return importer.error() << "input 0 is no sequence";
  return sequence->sequence;
}

LogicalResult importSequenceInsert(NodeImporter &importer) {
  FailureOr<std::vector<GraphValue>> elements = sequenceOf(importer);
  if (failed(elements) || failed(importer.type(1)))
    return failure();
  FailureOr<size_t> at = positionIn(importer, 2, elements->size(), true);
  if (failed(at))
    return failure();
  elements->insert(elements->begin() + *at, *importer.value(1));
  return importer.bindSequence(std::move(*elements));
}

LogicalResult importSequenceErase(NodeImporter &importer) {
  FailureOr<std::vector<GraphValue>> elements = sequenceOf(importer);
  FailureOr<size_t> at =
      failed(elements) ? FailureOr<size_t>(failure()) : positionIn(importer, 1, elements->size(), false);
  if (failed(at))
    return failure();
  elements->erase(elements->begin() + *at);
  return importer.bindSequence(std::move(*elements));
}

LogicalResult importSequenceLength(NodeImporter &importer) {
  FailureOr<std::vector<GraphValue>> elements = sequenceOf(importer);
  if (failed(elements))
    return failure();
  auto length =
      std::make_shared<StaticTensor>(StaticTensor::ofInts(onnx::ElementType::I64, {}, {int64_t(elements->size())}));
  return importer.bindValue({length, {}, {}, false});
}

LogicalResult importConcatFromSequence(NodeImporter &importer) {
  FailureOr<std::vector<GraphValue>> elements = sequenceOf(importer);
  if (failed(elements))
    return failure();
  bool stacks = importer.node.intAttribute("new_axis", 0) != 0;
  SmallVector<Value> parts;
  for (const GraphValue &element : *elements) {
    FailureOr<Value> part = importer.materialize(element);
    if (failed(part))
      return failure();
    parts.push_back(*part);
  }
  if (parts.empty())
    return importer.error() << "joins an empty sequence";
  int64_t rank = cast<RankedTensorType>(parts[0].getType()).getRank() + stacks;
  FailureOr<int64_t> dim = importer.dim("axis", 0, rank);
  if (failed(dim))
    return failure();
  Shape joined;
  for (Value &part : parts) {
    Shape own(cast<RankedTensorType>(part.getType()).getShape());
    if (stacks)
      own.insert(own.begin() + std::min<int64_t>(*dim, own.size()), 1);
    part = importer.reshape(part, own);
    Shape expected = joined.empty() ? own : joined;
    expected[*dim] = own.size() == expected.size() ? own[*dim] : 0;
    if (expected != own)
      return importer.error() << "joins " << part.getType() << " and " << parts[0].getType() << " along dim " << *dim;
    own[*dim] += joined.empty() ? 0 : joined[*dim];
    joined = own;
  }
  auto type = cast<RankedTensorType>(parts[0].getType()).clone(joined);
  return importer.bind(ConcatOp::create(importer.builder, importer.loc, type, parts, *dim));
}

/// Optionals are dissolved: one that holds something is that value.
LogicalResult importOptional(NodeImporter &importer) {
  return importer.bindValue(importer.has(0) ? *importer.value(0) : GraphValue());
}

LogicalResult importOptionalGetElement(NodeImporter &importer) {
  if (!importer.has(0))
    return importer.error() << "gets the element of an optional that holds nothing";
  return importer.bindValue(*importer.value(0));
}

LogicalResult importOptionalHasElement(NodeImporter &importer) {
  auto holds =
      std::make_shared<StaticTensor>(StaticTensor::ofInts(onnx::ElementType::Bool, {}, {importer.has(0) ? 1 : 0}));
  return importer.bindValue({holds, {}, {}, false});
}

/// Parts of shape arithmetic stay known.
constexpr int64_t knownLimit = 4096;
LogicalResult bindKnownParts(NodeImporter &importer, const StaticTensor &whole, int64_t dim, ArrayRef<int64_t> sizes) {
  int64_t start = 0;
  for (auto [k, size] : llvm::enumerate(sizes)) {
    Shape shape(whole.getShape());
    shape[dim] = size;
    auto part = std::make_shared<StaticTensor>(whole.getType(), shape, shape);
    int64_t at = 0;
    forEachIndex(shape, [&](ArrayRef<int64_t> index) {
      Shape from(index);
      from[dim] += start;
      part->copy(at++, whole, whole.position(from));
    });
    start += size;
    if (failed(importer.bindValue(GraphValue{part, {}, {}, false}, k)))
      return failure();
  }
  return success();
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
  if (int64_t said = importer.node.intAttribute("num_outputs", count); said != count)
    return importer.error() << "num_outputs is " << said << ", and it has " << count << " outputs";
  int64_t equal = (total + count - 1) / count;
  FailureOr<SmallVector<int64_t>> sizes =
      partSizes(importer, total, *split ? ArrayRef<int64_t>(**split) : ArrayRef(equal), !*split);
  if (failed(sizes))
    return failure();
  if (int64_t(sizes->size()) != count)
    return importer.error() << "splits " << total << " elements into " << sizes->size() << " parts, and has " << count
                            << " outputs";
  const StaticTensor *known = importer.value(0)->known.get();
  if (known && known->getElements() <= knownLimit)
    return bindKnownParts(importer, *known, *dim, *sizes);
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
  table["SequenceEmpty"] = importSequenceEmpty;
  table["SequenceConstruct"] = importSequenceConstruct;
  table["SequenceInsert"] = importSequenceInsert;
  table["SequenceErase"] = importSequenceErase;
  table["SequenceLength"] = importSequenceLength;
  table["ConcatFromSequence"] = importConcatFromSequence;
  table["Optional"] = importOptional;
  table["OptionalGetElement"] = importOptionalGetElement;
  table["OptionalHasElement"] = importOptionalHasElement;
}

} // namespace par
