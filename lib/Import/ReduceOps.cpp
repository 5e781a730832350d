// Reductions. A mean is a sum and a product, so that a mean over the batch can be cut into microbatches.
#include "GraphImporter.h"

namespace par {
namespace {

using namespace mlir;

struct Reduced {
  Value operand;
  SmallVector<int64_t> dims;
  Shape shape; ///< of the result
  bool nothing = false;
};

FailureOr<Reduced> resolve(NodeImporter &importer) {
  FailureOr<std::optional<SmallVector<int64_t>>> axes = importer.ints("axes", 1);
  FailureOr<Value> x = failed(axes) ? FailureOr<Value>(failure()) : importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  Reduced reduced{*x, {}, {}};
  bool all = !*axes || (*axes)->empty();
  reduced.nothing = all && importer.node.intAttribute("noop_with_empty_axes", 0) != 0;
  for (int64_t axis : axes->value_or(SmallVector<int64_t>())) {
    FailureOr<int64_t> dim = normalizeDim(axis, type.getRank());
    if (failed(dim) || llvm::is_contained(reduced.dims, *dim))
      return importer.error() << "axis " << axis << " does not fit " << type;
    reduced.dims.push_back(*dim);
  }
  llvm::sort(reduced.dims);
  if (all && !reduced.nothing)
    reduced.dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  bool keep = importer.node.intAttribute("keepdims", 1) != 0;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    bool gone = llvm::is_contained(reduced.dims, i);
    if (!gone || keep)
      reduced.shape.push_back(gone ? 1 : type.getDimSize(i));
  }
  return reduced;
}

Value reduce(NodeImporter &importer, ReduceKind kind, Value x, ArrayRef<int64_t> dims) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> kept;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (!llvm::is_contained(dims, i))
      kept.push_back(type.getDimSize(i));
  return dims.empty() ? x : ReduceOp::create(importer.builder, importer.loc, type.clone(kept), kind, x, dims);
}

template <ReduceKind kind>
LogicalResult importReduce(NodeImporter &importer) {
  FailureOr<Reduced> reduced = resolve(importer);
  if (failed(reduced))
    return failure();
  return importer.bind(
      importer.reshape(reduce(importer, kind, reduced->operand, reduced->dims), reduced->shape));
}

LogicalResult importReduceMean(NodeImporter &importer) {
  FailureOr<Reduced> reduced = resolve(importer);
  if (failed(reduced))
    return failure();
  auto type = cast<RankedTensorType>(reduced->operand.getType());
  if (!isa<FloatType>(type.getElementType()))
    return importer.unsupported("integers");
  int64_t count = 1;
  for (int64_t dim : reduced->dims)
    count *= type.getDimSize(dim);
  Value sum = reduce(importer, ReduceKind::sum, reduced->operand, reduced->dims);
  auto sumType = cast<RankedTensorType>(sum.getType());
  if (count != 1)
    sum = MultiplyOp::create(importer.builder, importer.loc, sum, importer.splat(sumType, 1.0 / double(count)));
  return importer.bind(importer.reshape(sum, reduced->shape));
}

LogicalResult importReduceSumSquare(NodeImporter &importer) {
  FailureOr<Reduced> reduced = resolve(importer);
  if (failed(reduced))
    return failure();
  Value square = MultiplyOp::create(importer.builder, importer.loc, reduced->operand, reduced->operand);
  return importer.bind(
      importer.reshape(reduce(importer, ReduceKind::sum, square, reduced->dims), reduced->shape));
}

LogicalResult importCumSum(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  const StaticTensor *axis = importer.known(1);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<int64_t> dim = failure();
  if (axis && axis->getElements() == 1)
    dim = normalizeDim(axis->intAt(0), type.getRank());
  if (failed(dim))
    return importer.error() << "its axis is not known or does not fit " << type;
  return importer.bind(CumulativeOp::create(importer.builder, importer.loc, type, ReduceKind::sum, *x, *dim,
                                            importer.node.intAttribute("exclusive", 0) != 0,
                                            importer.node.intAttribute("reverse", 0) != 0));
}

template <ReduceKind kind>
LogicalResult importArgReduce(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<int64_t> dim = importer.dim("axis", 0, type.getRank());
  if (failed(dim))
    return failure();
  if (importer.node.intAttribute("select_last_index", 0) != 0)
    return importer.unsupported("select_last_index");
  SmallVector<int64_t> shape(type.getShape()), kept(shape);
  kept.erase(kept.begin() + *dim);
  shape[*dim] = 1;
  Type i64 = importer.builder.getI64Type();
  Value result = ArgReduceOp::create(importer.builder, importer.loc, RankedTensorType::get(kept, i64), kind, *x, *dim);
  return importer.bind(importer.reshape(result, importer.node.intAttribute("keepdims", 1) ? shape : kept));
}

} // namespace

void addReduceImports(ImportTable &table) {
  table["ReduceSum"] = importReduce<ReduceKind::sum>;
  table["ReduceMax"] = importReduce<ReduceKind::max>;
  table["ReduceMin"] = importReduce<ReduceKind::min>;
  table["ReduceProd"] = importReduce<ReduceKind::product>;
  table["ReduceMean"] = importReduceMean;
  table["ReduceSumSquare"] = importReduceSumSquare;
  table["CumSum"] = importCumSum;
  table["ArgMax"] = importArgReduce<ReduceKind::max>;
  table["ArgMin"] = importArgReduce<ReduceKind::min>;
}

} // namespace par
