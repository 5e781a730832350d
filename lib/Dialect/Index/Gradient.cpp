#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Differentiable.h"

#include "par/Dialect/Term.h"

using namespace mlir;

namespace par {
namespace {

/// Ops that pick and ops that add are each other's adjoints; nothing flows back to indices.
template <typename Pick, typename Add>
struct PickGradient : DifferentiableOpInterface::ExternalModel<PickGradient<Pick, Add>, Pick> {
  FailureOr<SmallVector<Value>> differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto pick = cast<Pick>(op);
    int64_t dim = pick.getDim(), size = cast<RankedTensorType>(pick.getOperand().getType()).getDimSize(dim);
    return SmallVector<Value>{Add::create(builder, op->getLoc(), cotangents.front(), pick.getIndices(), dim, size),
                              Value()};
  }
};

template <typename Add, typename Pick>
struct AddGradient : DifferentiableOpInterface::ExternalModel<AddGradient<Add, Pick>, Add> {
  FailureOr<SmallVector<Value>> differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto add = cast<Add>(op);
    return SmallVector<Value>{Pick::create(builder, op->getLoc(), cotangents.front(), add.getIndices(), add.getDim()),
                              Value()};
  }
};

struct ScatterReduceGradient : DifferentiableOpInterface::ExternalModel<ScatterReduceGradient, ScatterReduceOp> {
  FailureOr<SmallVector<Value>> differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto scatter = cast<ScatterReduceOp>(op);
    Term ct(builder, op->getLoc(), cotangents.front()), u = ct.with(scatter.getUpdates());
    Value indices = scatter.getIndices();
    int64_t dim = scatter.getDim(), size = scatter.getSize();
    // at(x): x at each update's index. sumAtSameIndex(x): x summed over the updates of that index.
    auto at = [&](Term whole) { return ct.with(TakeOp::create(builder, op->getLoc(), whole, indices, dim)); };
    auto sumAtSameIndex = [&](Term parts) {
      return at(ct.with(ScatterAddOp::create(builder, op->getLoc(), parts, indices, dim, size)));
    };
    Type element = u.getType().getElementType();
    if (scatter.getKind() == ReduceKind::sum)
      return SmallVector<Value>{at(ct), Value()};
    if (scatter.getKind() == ReduceKind::max || scatter.getKind() == ReduceKind::min) {
      // Equal maxima share the cotangent, as in PyTorch's amax.
      Term chosen = u.compare(Predicate::eq, at(ct.with(scatter.getResult()))).convert(element);
      Term many = sumAtSameIndex(chosen);
      return SmallVector<Value>{at(ct) * chosen / many.compare(Predicate::eq, 0).select(u.splat(1), many), Value()};
    }
    if (scatter.getKind() != ReduceKind::product)
      return failure();
    // The product of the other updates without a division by 0: an index's only 0 gets the product of the rest, which
    // get 0.
    Term isZero = u.compare(Predicate::eq, 0), one = u.splat(1), zero = u.splat(0);
    Term safe = isZero.select(one, u);
    Term rest =
        at(ct.with(ScatterReduceOp::create(builder, op->getLoc(), ReduceKind::product, safe, indices, dim, size)));
    Term others = sumAtSameIndex(isZero.convert(element)) - isZero.convert(element);
    Term product = others.compare(Predicate::eq, 0).select(rest / safe, zero);
    return SmallVector<Value>{at(ct) * product, Value()};
  }
};

} // namespace

void registerIndexGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<GatherOp, PickGradient<GatherOp, IndexAddOp>>(*context);
    attachOnce<TakeOp, PickGradient<TakeOp, ScatterAddOp>>(*context);
    attachOnce<IndexAddOp, AddGradient<IndexAddOp, GatherOp>>(*context);
    attachOnce<ScatterReduceOp, ScatterReduceGradient>(*context);
    attachOnce<ScatterAddOp, AddGradient<ScatterAddOp, TakeOp>>(*context);
  });
}

} // namespace par
