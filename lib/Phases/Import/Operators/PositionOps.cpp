// Ops that compare positions with values: masks, diagonals, one-hot rows, reversals of a length each, repetitions.
#include "Indices.h"
#include "Operands.h"

namespace par {
namespace {

using namespace mlir;

/// A row with `on` at the index and `off` elsewhere; an index out of range gives a row of `off`.
LogicalResult importOneHot(NodeImporter &importer) {
  FailureOr<Value> given = importer.tensor(0), values = importer.tensor(2);
  const StaticTensor *depth = importer.known(1);
  if (failed(given) || failed(values))
    return failure();
  auto type = cast<RankedTensorType>(given->getType()), valueType = cast<RankedTensorType>(values->getType());
  if (!depth || depth->getElements() != 1 || depth->intAt(0) < 0)
    return importer.error()
           << "its depth depends on data, which an ahead-of-time program cannot hold; export it as a constant";
  if (valueType.getShape() != ArrayRef<int64_t>{2})
    return importer.error() << "its values are " << valueType << ", expected two: off and on";
  FailureOr<int64_t> dim = importer.dim("axis", -1, type.getRank() + 1);
  if (failed(dim))
    return failure();
  int64_t size = depth->intAt(0);
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + *dim, size);
  Term index = termOf(importer, *given).convert(importer.builder.getI64Type());
  index = index.compare(Predicate::lt, 0).select(index + double(size), index);
  index = index.broadcast(otherDims(shape.size(), {*dim}), shape);
  Term here = index.compare(Predicate::eq, positions(importer, type.clone(shape), *dim));
  auto value = [&](int64_t k) {
    return termOf(importer, importer.reshape(importer.slice(*values, 0, k, 1), {})).broadcast(shape);
  };
  return importer.bind(here.select(value(1), value(0)));
}

LogicalResult importTrilu(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  if (type.getRank() < 2)
    return importer.error() << "operand is " << type << ", expected a matrix or more";
  const StaticTensor *given = importer.known(1);
  if (importer.has(1) && (!given || given->getElements() != 1))
    return importer.error()
           << "its k depends on data, which an ahead-of-time program cannot hold; export it as a constant";
  double diagonal = given ? double(std::clamp<int64_t>(given->intAt(0), INT32_MIN, INT32_MAX)) : 0;
  bool upper = importer.node.intAttribute("upper", 1) != 0;
  auto matrix = type.clone(type.getShape().take_back(2));
  Term row = positions(importer, matrix, 0), column = positions(importer, matrix, 1);
  Term kept = column.compare(upper ? Predicate::ge : Predicate::le, row + diagonal);
  int64_t rank = type.getRank();
  kept = kept.broadcast({rank - 2, rank - 1}, type.getShape());
  return importer.bind(kept.select(*x, importer.splat(type, 0)));
}

LogicalResult importEyeLike(NodeImporter &importer) {
  FailureOr<RankedTensorType> like = importer.type(0);
  if (failed(like))
    return failure();
  if (like->getRank() != 2)
    return importer.error() << "operand is " << *like << ", expected a matrix";
  Type element = like->getElementType();
  if (importer.node.attribute("dtype")) {
    FailureOr<Type> asked = importer.elementType("dtype");
    if (failed(asked))
      return failure();
    element = *asked;
  }
  Term row = positions(importer, *like, 0), column = positions(importer, *like, 1);
  Term diagonal = column.compare(Predicate::eq, row + double(importer.node.intAttribute("k", 0)));
  return importer.bind(diagonal.convert(element));
}

/// The first `length` elements of every sample in reverse, the others as they are.
LogicalResult importReverseSequence(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0), lengths = importer.tensor(1);
  if (failed(x) || failed(lengths))
    return failure();
  auto type = cast<RankedTensorType>(x->getType()), lengthType = cast<RankedTensorType>(lengths->getType());
  FailureOr<int64_t> time = importer.dim("time_axis", 0, type.getRank()),
                     batch = importer.dim("batch_axis", 1, type.getRank());
  if (failed(time) || failed(batch))
    return failure();
  if (*time == *batch || lengthType.getShape() != ArrayRef<int64_t>{type.getDimSize(*batch)})
    return importer.error() << "reverses dim " << *time << " of " << type << " by lengths " << lengthType
                            << ", expected one for each sample of dim " << *batch;
  Term at = positions(importer, type, *time);
  Term length = at.with(*lengths).convert(importer.builder.getI64Type()).broadcast({*batch}, type.getShape());
  Term index = at.compare(Predicate::lt, length).select(length - at - 1.0, at);
  return importer.bind(takeAt(importer, *x, index, *time));
}

/// [a, b] repeated (2, 3) times is [2, a, 3, b] seen as [2 a, 3 b].
LogicalResult importTile(NodeImporter &importer) {
  FailureOr<std::optional<SmallVector<int64_t>>> repeats = importer.ints("repeats", 1);
  FailureOr<Value> x = failed(repeats) ? FailureOr<Value>(failure()) : importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  if (!*repeats || int64_t((*repeats)->size()) != type.getRank() ||
      llvm::any_of(**repeats, [](int64_t n) { return n < 0 || n > INT32_MAX; }))
    return importer.error() << "its repeats do not fit " << type;
  SmallVector<int64_t> wide, dims, shape;
  for (auto [size, times] : llvm::zip(type.getShape(), **repeats)) {
    if (times != 1)
      wide.push_back(times);
    dims.push_back(wide.size());
    wide.push_back(size);
    shape.push_back(saturatingProduct(size, times));
  }
  if (!isWithinMemory(shape))
    return importer.error() << "repeats " << type << " to more than any memory holds";
  Value repeated = buildBroadcast(importer.builder, importer.loc, *x, dims, wide);
  return importer.bind(importer.reshape(repeated, shape));
}

/// The elements selected by a condition that is known at compile time.
LogicalResult importCompress(NodeImporter &importer) {
  FailureOr<std::optional<SmallVector<int64_t>>> condition = importer.ints("condition", 1);
  FailureOr<Value> x = failed(condition) ? FailureOr<Value>(failure()) : importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  Value operand = *x;
  int64_t along = 0;
  if (importer.node.attribute("axis")) {
    FailureOr<int64_t> dim = importer.dim("axis", 0, type.getRank());
    if (failed(dim))
      return failure();
    along = *dim;
  } else {
    operand = importer.reshape(operand, {type.getNumElements()});
  }
  auto flat = cast<RankedTensorType>(operand.getType());
  SmallVector<int64_t> chosen, shape(flat.getShape());
  for (auto [i, holds] : llvm::enumerate((*condition).value_or(SmallVector<int64_t>())))
    if (holds)
      chosen.push_back(i);
  if (!chosen.empty() && chosen.back() >= flat.getDimSize(along))
    return importer.error() << "its condition holds at " << chosen.back() << " of " << flat.getDimSize(along)
                            << " elements";
  shape[along] = chosen.size();
  auto known = StaticTensor::ofInts(onnx::ElementType::I64, {int64_t(chosen.size())},
                                    std::vector<int64_t>(chosen.begin(), chosen.end()));
  FailureOr<Value> indices = importer.knownAs(1, known);
  if (failed(indices))
    return failure();
  return importer.bind(GatherOp::create(importer.builder, importer.loc, flat.clone(shape), operand, *indices, along));
}

} // namespace

void addPositionImports(ImportTable &table) {
  table["OneHot"] = importOneHot;
  table["Trilu"] = importTrilu;
  table["EyeLike"] = importEyeLike;
  table["ReverseSequence"] = importReverseSequence;
  table["Tile"] = importTile;
  table["Compress"] = importCompress;
}

} // namespace par
