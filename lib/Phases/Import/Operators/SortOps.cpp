// Ops along one dim: running sums and products of elements, extremes and order.
#include "Operands.h"

namespace par {
namespace {

using namespace mlir;

/// The dim that input 1 or the attribute `axis` names.
FailureOr<int64_t> dimOf(NodeImporter &importer, RankedTensorType type) {
  const StaticTensor *axis = importer.known(1);
  FailureOr<int64_t> dim = failure();
  if (axis && axis->getElements() == 1)
    dim = normalizeDim(axis->intAt(0), type.getRank());
  if (failed(dim))
    return importer.error() << "its axis is not known or does not fit " << type;
  return dim;
}

template <ReduceKind kind>
LogicalResult importCumulative(NodeImporter &importer) {
  FailureOr<Value> x = importer.tensor(0);
  if (failed(x))
    return failure();
  auto type = cast<RankedTensorType>(x->getType());
  FailureOr<int64_t> dim = dimOf(importer, type);
  if (failed(dim))
    return failure();
  return importer.bind(CumulativeOp::create(importer.builder, importer.loc, type, kind, *x, *dim,
                                            importer.node.intAttribute("exclusive", 0) != 0,
                                            importer.node.intAttribute("reverse", 0) != 0));
}

/// Index of the extreme along `dim`, which vanishes; the last one is the first of the reversed.
Term argReduce(NodeImporter &importer, Term x, ReduceKind kind, int64_t dim, bool last) {
  OpBuilder &builder = importer.builder;
  if (!last)
    return x.with(ArgReduceOp::create(builder, x.getLoc(), kind, x, dim));
  Term reversed = x.with(importer.reverse(x, dim));
  Term index = x.with(ArgReduceOp::create(builder, x.getLoc(), kind, reversed, dim));
  return double(x.getShape()[dim] - 1) - index;
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
  Term index =
      argReduce(importer, termOf(importer, *x), kind, *dim, importer.node.intAttribute("select_last_index", 0) != 0);
  SmallVector<int64_t> shape(type.getShape());
  if (importer.node.intAttribute("keepdims", 1))
    shape[*dim] = 1;
  else
    shape.erase(shape.begin() + *dim);
  return importer.bind(importer.reshape(index, shape));
}

/// K from its input, before opset 10 from its attribute.
FailureOr<int64_t> countOf(NodeImporter &importer, int64_t size) {
  int64_t count = importer.node.intAttribute("k", -1);
  if (importer.has(1)) {
    const StaticTensor *known = importer.known(1);
    if (!known || known->getElements() != 1)
      return importer.error()
             << "its K depends on data, which an ahead-of-time program cannot hold; export it as a constant";
    count = known->intAt(0);
  }
  if (count < 0 || count > size)
    return importer.error() << "takes the first " << count << " of " << size << " elements";
  return count;
}

/// The indices that sort come from putting every index at its element's position; values are taken by them, so that
/// their cotangents find the way back.
LogicalResult importTopK(NodeImporter &importer) {
  FailureOr<Value> operand = importer.tensor(0);
  if (failed(operand))
    return failure();
  Term x = termOf(importer, *operand);
  FailureOr<int64_t> dim = importer.dim("axis", -1, x.getType().getRank());
  FailureOr<int64_t> count = failed(dim) ? FailureOr<int64_t>(failure()) : countOf(importer, x.getShape()[*dim]);
  if (failed(count))
    return failure();
  OpBuilder &builder = importer.builder;
  auto indices = x.getType().clone(builder.getI64Type());
  bool largest = importer.node.intAttribute("largest", 1) != 0;
  Value position = SortedPositionOp::create(builder, importer.loc, indices, x, *dim, largest);
  Value iota = IotaOp::create(builder, importer.loc, indices, *dim);
  Value order = ScatterAddOp::create(builder, importer.loc, indices, iota, position, *dim, x.getShape()[*dim]);
  Value chosen = importer.slice(order, *dim, 0, *count);
  Value values = TakeOp::create(builder, importer.loc, x, chosen, *dim);
  if (failed(importer.bind(values, 0)))
    return failure();
  return importer.isUsed(1) ? importer.bind(chosen, 1) : success();
}

/// 1 at the first largest element along a dim, else 0. Before opset 13 all dims from the axis on were one.
LogicalResult importHardmax(NodeImporter &importer) {
  FailureOr<Value> operand = importer.tensor(0);
  if (failed(operand))
    return failure();
  auto type = cast<RankedTensorType>(operand->getType());
  bool old = importer.opset() < 13;
  FailureOr<int64_t> dim = importer.dim("axis", old ? 1 : -1, type.getRank());
  if (failed(dim))
    return failure();
  Value x = *operand;
  if (old)
    x = importer.reshape(
        x, {countElements(type.getShape().take_front(*dim)), countElements(type.getShape().drop_front(*dim))});
  int64_t along = old ? 1 : *dim;
  Term index = argReduce(importer, termOf(importer, x), ReduceKind::max, along, false);
  auto flat = cast<RankedTensorType>(x.getType());
  Value iota = IotaOp::create(importer.builder, importer.loc, flat.clone(importer.builder.getI64Type()), along);
  Term wide = index.broadcast(otherDims(flat.getRank(), {along}), flat.getShape());
  Term result = wide.compare(Predicate::eq, iota).convert(type.getElementType());
  return importer.bind(importer.reshape(result, type.getShape()));
}

} // namespace

void addSortImports(ImportTable &table) {
  table["CumSum"] = importCumulative<ReduceKind::sum>;
  table["CumProd"] = importCumulative<ReduceKind::product>;
  table["ArgMax"] = importArgReduce<ReduceKind::max>;
  table["ArgMin"] = importArgReduce<ReduceKind::min>;
  table["TopK"] = importTopK;
  table["Hardmax"] = importHardmax;
}

} // namespace par
