// Products.
#include "Operands.h"

#include "llvm/ADT/bit.h"

#include <map>

namespace par {
namespace {

using namespace mlir;

/// An operand of a matmul: a value and which of its dims are batching, free and contracted. A transpose that only swaps
/// the last two dims is looked through, and the dims say so.
struct Factor {
  Value value;
  int64_t free = 0, contracted = 0;
  RankedTensorType type() const { return cast<RankedTensorType>(value.getType()); }
};

Factor lookThroughTranspose(Factor factor) {
  auto transpose = factor.value.getDefiningOp<TransposeOp>();
  if (!transpose)
    return factor;
  ArrayRef<int64_t> order = transpose.getPermutation();
  for (size_t i = 0; i + 2 < order.size(); ++i)
    if (order[i] != int64_t(i))
      return factor;
  return {transpose.getOperand(), order[factor.free], order[factor.contracted]};
}

/// x (..., m, k) by w (k, n): every dim of x but the contracted one is free. A merge of leading dims (the exporter's
/// [8, 32, 64] seen as [256, 64]) moves after the matmul.
LogicalResult bindLinear(NodeImporter &importer, Value x, Factor w, function_ref<FailureOr<Value>(Value)> addBias) {
  auto type = cast<RankedTensorType>(x.getType());
  MergedDims merged = findMergedDims(x);
  Value inner = merged.inner ? merged.inner : x;
  int64_t last = cast<RankedTensorType>(inner.getType()).getRank() - 1;
  Value product = buildDot(importer.builder, importer.loc, inner, w.value, {last}, {w.contracted});
  if (addBias) {
    FailureOr<Value> sum = addBias(product);
    if (failed(sum))
      return failure();
    product = *sum;
  }
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = w.type().getDimSize(w.free);
  return importer.bind(importer.reshape(product, shape));
}

Value scaled(NodeImporter &importer, Value value, double factor) {
  if (factor == 1)
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  return MultiplyOp::create(importer.builder, importer.loc, value, importer.splat(type, factor));
}

/// alpha x w + beta C. The result may still have the unmerged rows of x; a C with rows of its own is added to merged
/// rows.
FailureOr<Value> addBias(NodeImporter &importer, Value product, int64_t rows) {
  double beta = importer.node.floatAttribute("beta", 1);
  product = scaled(importer, product, importer.node.floatAttribute("alpha", 1));
  if (!importer.has(2) || beta == 0)
    return product;
  FailureOr<RankedTensorType> own = importer.type(2);
  if (failed(own))
    return failure();
  auto type = cast<RankedTensorType>(product.getType());
  Shape matrix{rows, type.getShape().back()};
  FailureOr<Shape> joined = broadcastShapes(own->getShape(), matrix);
  if (failed(joined) || *joined != matrix || own->getElementType() != type.getElementType())
    return importer.error() << "its bias is " << *own << ", the matmul " << type;
  if (own->getRank() == 2 && own->getDimSize(0) != 1)
    product = importer.reshape(product, matrix);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(product.getType()).getShape();
  FailureOr<Value> bias = failure();
  if (own->getRank() == 2 && own->getDimSize(0) == 1 && !importer.known(2)) // [1, n] is [n]
    bias = importer.stretch(importer.reshape(importer.value(2)->computed, {own->getDimSize(1)}), shape);
  else
    bias = importer.stretched(2, shape);
  if (failed(bias))
    return failure();
  return Value(AddOp::create(importer.builder, importer.loc, product, scaled(importer, *bias, beta)));
}

LogicalResult importGemm(NodeImporter &importer) {
  FailureOr<Value> a = importer.tensor(0), b = importer.tensor(1);
  if (failed(a) || failed(b))
    return failure();
  auto aType = cast<RankedTensorType>(a->getType()), bType = cast<RankedTensorType>(b->getType());
  bool transA = importer.node.intAttribute("transA", 0) != 0, transB = importer.node.intAttribute("transB", 0) != 0;
  if (aType.getRank() != 2 || bType.getRank() != 2 || aType.getElementType() != bType.getElementType() ||
      aType.getDimSize(transA ? 0 : 1) != bType.getDimSize(transB ? 1 : 0))
    return importer.error() << aType << (transA ? " transposed" : "") << " by " << bType
                            << (transB ? " transposed" : "") << " is no product of matrices";
  Value x = transA ? importer.transpose(*a, {1, 0}) : *a;
  int64_t rows = aType.getDimSize(transA ? 1 : 0);
  return bindLinear(importer, x, lookThroughTranspose({*b, transB ? 0 : 1, transB ? 1 : 0}),
                    [&](Value product) { return addBias(importer, product, rows); });
}

/// Both operands with equal leading dims, which are the matmul's batch dims.
LogicalResult bindBatched(NodeImporter &importer, Value a, Value b) {
  auto aType = cast<RankedTensorType>(a.getType()), bType = cast<RankedTensorType>(b.getType());
  FailureOr<Shape> batch = broadcastShapes(aType.getShape().drop_back(2), bType.getShape().drop_back(2));
  if (failed(batch))
    return importer.error() << aType << " and " << bType << " do not broadcast";
  auto stretchBatch = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    Shape shape(*batch);
    llvm::append_range(shape, type.getShape().take_back(2));
    return importer.stretch(value, shape);
  };
  int64_t rank = batch->size();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  Factor lhs = lookThroughTranspose({stretchBatch(a), rank, rank + 1});
  Factor rhs = lookThroughTranspose({stretchBatch(b), rank + 1, rank});
  return importer.bind(
      buildDot(importer.builder, importer.loc, lhs.value, rhs.value, {lhs.contracted}, {rhs.contracted}, dims, dims));
}

LogicalResult importMatMul(NodeImporter &importer) {
  FailureOr<Value> a = importer.tensor(0), b = importer.tensor(1);
  if (failed(a) || failed(b))
    return failure();
  auto aType = cast<RankedTensorType>(a->getType()), bType = cast<RankedTensorType>(b->getType());
  if (aType.getRank() == 0 || bType.getRank() == 0 || aType.getElementType() != bType.getElementType() ||
      aType.getShape().back() != bType.getDimSize(std::max<int64_t>(bType.getRank() - 2, 0)))
    return importer.error() << aType << " by " << bType << " is no product of matrices";
  if (bType.getRank() == 2)
    return bindLinear(importer, *a, lookThroughTranspose({*b, 1, 0}), nullptr);
  if (bType.getRank() == 1)
    return importer.bind(buildDot(importer.builder, importer.loc, *a, *b, {aType.getRank() - 1}, {0}));
  if (aType.getRank() == 1) { // a vector by matrices: its dim is contracted, the batch and the columns stay
    int64_t rank = bType.getRank();
    return importer.bind(buildDot(importer.builder, importer.loc, *b, *a, {rank - 2}, {0}));
  }
  return bindBatched(importer, *a, *b);
}

/// Determinants of the leading columns of every set of rows, one column more each time (Laplace): without divisions, so
/// that every matrix has a gradient. 2^n multiplications, few for a small matrix.
LogicalResult importDet(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  int64_t rank = type.getRank(), size = rank ? type.getShape().back() : 0;
  if (rank < 2 || type.getDimSize(rank - 2) != size || size == 0)
    return importer.error() << "operand is " << type << ", expected square matrices";
  if (size > 8)
    return importer.unsupported("matrices of more than 8 rows, here " + Twine(size) + ",");
  ArrayRef<int64_t> batch = type.getShape().drop_back(2);
  auto element = [&](int64_t row, int64_t column) {
    Value picked = importer.slice(importer.slice(*x, rank - 2, row, 1), rank - 1, column, 1);
    return termOf(importer, importer.reshape(picked, batch));
  };
  std::map<unsigned, Term> minors; // by the set of rows; of as many columns
  for (int64_t row = 0; row < size; ++row)
    minors.emplace(1u << row, element(row, 0));
  for (int64_t column = 1; column < size; ++column) {
    std::map<unsigned, Term> wider;
    for (auto &[rows, minor] : minors)
      for (int64_t row = 0; row < size; ++row) {
        if (rows >> row & 1)
          continue;
        // The new column is the last one: each row below the new one changes the sign.
        Term part = minor * element(row, column);
        part = llvm::popcount(rows >> row) % 2 ? -part : part;
        auto [at, isNew] = wider.try_emplace(rows | 1u << row, part);
        if (!isNew)
          at->second = at->second + part;
      }
    minors = std::move(wider);
  }
  return importer.bind(minors.begin()->second);
}

} // namespace

void addContractImports(ImportTable &table) {
  table["Gemm"] = importGemm;
  table["MatMul"] = importMatMul;
  table["Det"] = importDet;
}

} // namespace par
