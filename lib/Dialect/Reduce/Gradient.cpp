#include "par/Dialect/Term.h"
#include "par/Interfaces/Differentiable.h"

using namespace mlir;

namespace par {
namespace {

using Cotangents = FailureOr<SmallVector<Value>>;

Term cumulate(Term term, ReduceKind kind, int64_t dim, bool exclusive, bool reverse) {
  return term.with(
      CumulativeOp::create(term.getBuilder(), term.getLoc(), kind, term, dim, exclusive, reverse));
}

/// For every element the product of all others along `dims`, without a division: some may be 0.
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
      // Elements that are equally large share the cotangent, as PyTorch's amax has it.
      Term largest = ct.with(reduce.getResult()).broadcast(kept, x.getShape());
      Term chosen = x.compare(Predicate::eq, largest).convert(x.getType().getElementType());
      Term share = ct / chosen.reduce(ReduceKind::sum, dims);
      return SmallVector<Value>{chosen * share.broadcast(kept, x.getShape())};
    }
    case ReduceKind::band:
    case ReduceKind::bor:
      break;
    }
    return failure();
  }
};

struct CumulativeGradient : DifferentiableOpInterface::ExternalModel<CumulativeGradient, CumulativeOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto cumulative = cast<CumulativeOp>(op);
    if (cumulative.getKind() != ReduceKind::sum)
      return failure();
    Term ct(builder, op->getLoc(), cotangents.front());
    return SmallVector<Value>{cumulate(ct, ReduceKind::sum, cumulative.getDim(), cumulative.getExclusive(),
                                       !cumulative.getReverse())};
  }
};

} // namespace

void registerReduceGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    ReduceOp::attachInterface<ReduceGradient>(*context);
    CumulativeOp::attachInterface<CumulativeGradient>(*context);
  });
}

} // namespace par
