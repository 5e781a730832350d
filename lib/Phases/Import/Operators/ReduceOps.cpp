// Reductions. A mean is a sum and a multiplication, so that a mean over the batch can be split into microbatches.
#include "Operands.h"

namespace par {
namespace {

using namespace mlir;

struct Reduced {
  Value operand;
  SmallVector<int64_t> dims;
  Shape shape; ///< of the result
  bool nothing = false;
};

FailureOr<Reduced> readReduction(NodeImporter &importer) {
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
  FailureOr<Reduced> reduced = readReduction(importer);
  if (failed(reduced))
    return failure();
  if (cast<RankedTensorType>(reduced->operand.getType()).getElementType().isInteger(1) &&
      (kind == ReduceKind::max || kind == ReduceKind::min)) {
    ReduceKind logical = kind == ReduceKind::max ? ReduceKind::bitOr : ReduceKind::bitAnd;
    return importer.bind(importer.reshape(reduce(importer, logical, reduced->operand, reduced->dims), reduced->shape));
  }
  return importer.bind(importer.reshape(reduce(importer, kind, reduced->operand, reduced->dims), reduced->shape));
}

LogicalResult importReduceMean(NodeImporter &importer) {
  FailureOr<Reduced> reduced = readReduction(importer);
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

Term square(Term x) { return x * x; }
Term same(Term x) { return x; }
/// A length whose gradient at 0 is 0, as in PyTorch, not 0 / 0: a row of zeros, padding for example, must not give NaN.
Term length(Term squares) {
  Term isZero = squares.compare(Predicate::eq, squares.splat(0));
  return isZero.select(squares.splat(0), sqrt(isZero.select(squares.splat(1), squares)));
}

/// after(sum of before(x)). Along no dims at all the functions are applied all the same.
template <Term (*before)(Term), Term (*after)(Term)>
LogicalResult importSumOf(NodeImporter &importer) {
  FailureOr<Reduced> reduced = readReduction(importer);
  if (failed(reduced))
    return failure();
  Term sum = before(termOf(importer, reduced->operand)).reduce(ReduceKind::sum, reduced->dims);
  if (!isa<FloatType>(sum.getType().getElementType()) && after != static_cast<Term (*)(Term)>(same)) {
    // Integers take the root or the logarithm as doubles.
    Type element = sum.getType().getElementType();
    sum = after(sum.convert(importer.builder.getF64Type())).convert(element);
  } else {
    sum = after(sum);
  }
  return importer.bind(importer.reshape(sum, reduced->shape));
}

/// Shifted by the largest element, so that nothing overflows; an infinite one does not shift.
LogicalResult importReduceLogSumExp(NodeImporter &importer) {
  FailureOr<Reduced> reduced = readReduction(importer);
  if (failed(reduced))
    return failure();
  Term x = termOf(importer, reduced->operand);
  if (!isa<FloatType>(x.getType().getElementType()))
    return importer.unsupported("integers");
  if (reduced->dims.empty())
    return importer.bind(importer.reshape(x, reduced->shape));
  Term largest = x.reduce(ReduceKind::max, reduced->dims);
  Term finite = x.with(IsFiniteOp::create(importer.builder, importer.loc, largest));
  Term shift = finite.select(largest, largest.splat(0));
  Term wide = shift.broadcast(otherDims(x.getType().getRank(), reduced->dims), x.getShape());
  Term result = log(exp(x - wide).reduce(ReduceKind::sum, reduced->dims)) + shift;
  return importer.bind(importer.reshape(result, reduced->shape));
}

} // namespace

void addReduceImports(ImportTable &table) {
  table["ReduceSum"] = importReduce<ReduceKind::sum>;
  table["ReduceMax"] = importReduce<ReduceKind::max>;
  table["ReduceMin"] = importReduce<ReduceKind::min>;
  table["ReduceProd"] = importReduce<ReduceKind::product>;
  table["ReduceMean"] = importReduceMean;
  table["ReduceSumSquare"] = importSumOf<square, same>;
  table["ReduceL1"] = importSumOf<absolute, same>;
  table["ReduceL2"] = importSumOf<square, length>;
  table["ReduceLogSum"] = importSumOf<same, log>;
  table["ReduceLogSumExp"] = importReduceLogSumExp;
}

} // namespace par
