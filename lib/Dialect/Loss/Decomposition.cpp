#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Dialect/Term.h"

using namespace mlir;

namespace par {
namespace {

/// The dims of the tokens: all but the last one, the classes.
SmallVector<int64_t> tokenDims(Term logits) { return dimRange(0, logits.getType().getRank() - 1); }

/// Reductions and picks only along the class dim, so that it can be sharded: the maximum becomes an all_reduce max, the
/// sum an all_reduce sum, the pick a shift and a mask.
struct CrossEntropyDecomposition : DecomposableOpInterface::ExternalModel<CrossEntropyDecomposition, CrossEntropyOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto loss = cast<CrossEntropyOp>(op);
    // In the format of the loss, which is never a narrow one.
    Term z = Term(builder, op->getLoc(), loss.getLogits()).convert(getElementTypeOrSelf(loss.getLse().getType()));
    Term labels = z.with(loss.getLabels());
    int64_t classes = z.getType().getRank() - 1;
    Term largest = z.reduce(ReduceKind::max, classes);
    Term sum = exp(z - largest.broadcast(tokenDims(z), z.getShape())).reduce(ReduceKind::sum, classes);
    Term lse = log(sum) + largest;

    Term counts = labels.compare(Predicate::ne, static_cast<int64_t>(loss.getIgnore()));
    Term safe = counts.select(labels, labels.splat(0));
    SmallVector<int64_t> column(labels.getShape());
    column.push_back(1);
    Value picked = TakeOp::create(builder, op->getLoc(), z, safe.reshape(column), classes);
    Term own = z.with(picked).reshape(labels.getShape());
    return {counts.select(lse - own, lse.splat(0)), lse};
  }
};

struct CrossEntropyGradDecomposition
    : DecomposableOpInterface::ExternalModel<CrossEntropyGradDecomposition, CrossEntropyGradOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto grad = cast<CrossEntropyGradOp>(op);
    Term z = Term(builder, op->getLoc(), grad.getLogits()).convert(getElementTypeOrSelf(grad.getLse().getType()));
    Term labels = z.with(grad.getLabels());
    Term ct = z.with(grad.getCotangent());
    auto spread = [&](Term value) { return value.broadcast(tokenDims(z), z.getShape()); };
    Term softmax = exp(z - spread(z.with(grad.getLse())));
    // One-hot by comparing, not by scattering: elementwise, and the iota knows its offset where classes are
    // sharded.
    Value classes =
        IotaOp::create(builder, op->getLoc(), labels.getType().clone(z.getShape()), z.getType().getRank() - 1);
    Term isLabel = z.with(classes).compare(Predicate::eq, spread(labels));
    Term counts = labels.compare(Predicate::ne, static_cast<int64_t>(grad.getIgnore()));
    Term weight = counts.select(ct, ct.splat(0));
    Term result = spread(weight) * (softmax - isLabel.convert(z.getType().getElementType()));
    return {result.convert(getElementTypeOrSelf(grad.getResult().getType()))};
  }
};

} // namespace

void registerLossDecompositions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<CrossEntropyOp, CrossEntropyDecomposition>(*context);
    attachOnce<CrossEntropyGradOp, CrossEntropyGradDecomposition>(*context);
  });
}

} // namespace par
