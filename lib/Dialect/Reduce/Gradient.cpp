#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Differentiable.h"
#include "par/Dialect/Term.h"

using namespace mlir;

namespace par {
namespace {

using Cotangents = FailureOr<SmallVector<Value>>;

Term cumulate(Term term, ReduceKind kind, int64_t dim, bool exclusive, bool reverse) {
  return term.with(CumulativeOp::create(term.getBuilder(), term.getLoc(), kind, term, dim, exclusive, reverse));
}

/// For every element the product of all others along `dims`, without a division, since some may be 0.
Term productOfOthers(Term x, ArrayRef<int64_t> dims) {
  int64_t rank = x.getType().getRank();
  SmallVector<int64_t> order = otherDims(rank, dims), inverse(rank), moved, flat{1};
  llvm::append_range(order, dims);
  for (auto [i, dim] : llvm::enumerate(order)) {
    inverse[dim] = i;
    moved.push_back(x.getShape()[dim]);
    if (i + dims.size() < order.size())
      flat.insert(flat.end() - 1, moved.back());
    else
      flat.back() *= moved.back();
  }
  int64_t last = flat.size() - 1;
  Term row = x.transpose(order).reshape(flat);
  Term others = cumulate(row, ReduceKind::product, last, /*exclusive=*/true, /*reverse=*/false) *
                cumulate(row, ReduceKind::product, last, /*exclusive=*/true, /*reverse=*/true);
  return others.reshape(moved).transpose(inverse);
}

struct ReduceGradient : DifferentiableOpInterface::ExternalModel<ReduceGradient, ReduceOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto reduce = cast<ReduceOp>(op);
    Term ct(builder, op->getLoc(), cotangents.front()), x = ct.with(reduce.getOperand());
    SmallVector<int64_t> dims(reduce.getDims());
    llvm::sort(dims);
    SmallVector<int64_t> kept = otherDims(x.getType().getRank(), dims);
    switch (reduce.getKind()) {
    case ReduceKind::sum:
      return SmallVector<Value>{ct.broadcast(kept, x.getShape())};
    case ReduceKind::product:
      return SmallVector<Value>{ct.broadcast(kept, x.getShape()) * productOfOthers(x, dims)};
    case ReduceKind::max:
    case ReduceKind::min: {
      // Equal maxima share the cotangent, as in PyTorch's amax.
      Term largest = ct.with(reduce.getResult()).broadcast(kept, x.getShape());
      Term chosen = x.compare(Predicate::eq, largest).convert(x.getType().getElementType());
      Term share = ct / chosen.reduce(ReduceKind::sum, dims);
      return SmallVector<Value>{chosen * share.broadcast(kept, x.getShape())};
    }
    case ReduceKind::bitAnd:
    case ReduceKind::bitOr:
      break;
    }
    return failure();
  }
};

/// Element i is a factor of result k if i comes before k (or is k, unless exclusive). The cotangent of i is the sum
/// over those k of ct[k] times result k with element i replaced by 1. Every i has a row of its own, dim `dim` of the
/// square, so that nothing is divided by 0.
Term ofRunningProduct(CumulativeOp op, Term ct) {
  Term x = ct.with(op.getOperand());
  int64_t dim = op.getDim(), rank = x.getType().getRank();
  SmallVector<int64_t> square(x.getShape()), columns = otherDims(rank + 1, {dim});
  square.insert(square.begin() + dim, square[dim]);
  auto indices = RankedTensorType::get(square, ct.getBuilder().getI64Type());
  Term i = ct.with(IotaOp::create(ct.getBuilder(), ct.getLoc(), indices, dim));
  Term k = ct.with(IotaOp::create(ct.getBuilder(), ct.getLoc(), indices, dim + 1));
  Term wide = x.broadcast(columns, square);
  Term others = i.compare(Predicate::eq, k).select(wide.splat(1), wide);
  Term products = cumulate(others, ReduceKind::product, dim + 1, op.getExclusive(), op.getReverse());
  Predicate takesPart = op.getReverse() ? (op.getExclusive() ? Predicate::gt : Predicate::ge)
                                        : (op.getExclusive() ? Predicate::lt : Predicate::le);
  Term parts = i.compare(takesPart, k).select(products * ct.broadcast(columns, square), wide.splat(0));
  return parts.reduce(ReduceKind::sum, {dim + 1});
}

struct CumulativeGradient : DifferentiableOpInterface::ExternalModel<CumulativeGradient, CumulativeOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto cumulative = cast<CumulativeOp>(op);
    Term ct(builder, op->getLoc(), cotangents.front());
    if (cumulative.getKind() == ReduceKind::product)
      return SmallVector<Value>{ofRunningProduct(cumulative, ct)};
    if (cumulative.getKind() != ReduceKind::sum)
      return failure();
    return SmallVector<Value>{
        cumulate(ct, ReduceKind::sum, cumulative.getDim(), cumulative.getExclusive(), !cumulative.getReverse())};
  }
};

} // namespace

void registerReduceGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<ReduceOp, ReduceGradient>(*context);
    attachOnce<CumulativeOp, CumulativeGradient>(*context);
  });
}

} // namespace par
