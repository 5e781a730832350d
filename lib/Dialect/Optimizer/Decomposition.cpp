// The updates of optimizers as ops: elementwise formulas, of all of a weight or of some rows, and muon's matmuls.
#include "NewtonSchulz.h"
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Decomposable.h"
#include "par/Dialect/Term.h"

using namespace mlir;

namespace par {
namespace {

/// The rows of tensors that an update is of.
struct UpdatedRows {
  UpdatedRows(OpBuilder &builder, Location loc, Value rows) {
    Term named(builder, loc, rows);
    here.emplace(named.compare(Predicate::ge, 0));
    index.emplace(here->select(named, named.splat(0)));
  }
  /// These rows of `whole`. A negative row number gives row 0, which `put` drops.
  Term of(Term whole) const { return whole.with(GatherOp::create(build(), loc(), whole, *index, 0)); }
  /// `whole` with these rows replaced. Each row occurs once, so the scatter adds to zeros and keeps bits.
  Term put(Term rows, Term whole) const {
    Term kept = here->broadcast({0}, rows.getShape()).select(rows, rows.splat(0));
    Type counts = build().getI32Type();
    Term touched = scatter(here->convert(counts), whole.getShape()[0]).compare(Predicate::gt, 0);
    return touched.broadcast({0}, whole.getShape()).select(scatter(kept, whole.getShape()[0]), whole);
  }

private:
  OpBuilder &build() const { return index->getBuilder(); }
  Location loc() const { return index->getLoc(); }
  Term scatter(Term updates, int64_t size) const {
    return updates.with(IndexAddOp::create(build(), loc(), updates, *index, 0, size));
  }

  std::optional<Term> here, index;
};

/// The operands of an update of one parameter, as terms of the weight's type.
struct Update {
  template <typename Op>
  Update(Op op, OpBuilder &builder)
      : rows(op.getRows() ? std::optional(UpdatedRows(builder, op.getLoc(), op.getRows())) : std::nullopt),
        whole(builder, op.getLoc(), op.getWeight()), weight(rows ? rows->of(whole) : whole),
        gradient(weight.with(op.getGradient()).convert(weight.getType().getElementType())), lr(scalar(op.getLr())),
        decay(op.getWeightDecay().convertToDouble()) {}

  /// A scalar operand in the weight's element type.
  Term scalar(Value value) const { return weight.with(value).convert(weight.getType().getElementType()); }
  Term spread(Term value) const { return value.broadcast(weight.getShape()); }
  /// g + weight_decay w.
  Term decayed() const { return decay == 0 ? gradient : gradient + weight * decay; }
  /// The rows of a state that are updated, in the weight's element type.
  Term state(Value value) const {
    Term all = weight.with(value);
    return (rows ? rows->of(all) : all).convert(weight.getType().getElementType());
  }
  Value newWeight(Term value) const { return rows ? rows->put(value, whole) : value; }
  Value newState(Term value, Value old) const {
    Term kept = value.convert(getElementTypeOrSelf(old.getType()));
    return rows ? rows->put(kept, kept.with(old)) : kept;
  }

  std::optional<UpdatedRows> rows;
  Term whole, weight, gradient, lr;
  double decay;
};

struct SgdDecomposition : DecomposableOpInterface::ExternalModel<SgdDecomposition, SgdOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    Update update(cast<SgdOp>(op), builder);
    return {update.newWeight(update.weight - update.spread(update.lr) * update.decayed())};
  }
};

struct MomentumDecomposition : DecomposableOpInterface::ExternalModel<MomentumDecomposition, MomentumOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto momentum = cast<MomentumOp>(op);
    Update update(momentum, builder);
    double mu = momentum.getMomentum().convertToDouble();
    Term d = update.decayed();
    Term velocity = mu * update.state(momentum.getVelocity()) + d;
    Term direction = momentum.getNesterov() ? d + mu * velocity : velocity;
    return {update.newWeight(update.weight - update.spread(update.lr) * direction),
            update.newState(velocity, momentum.getVelocity())};
  }
};

struct AdamwDecomposition : DecomposableOpInterface::ExternalModel<AdamwDecomposition, AdamwOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto adamw = cast<AdamwOp>(op);
    Update update(adamw, builder);
    double beta1 = adamw.getBeta1().convertToDouble(), beta2 = adamw.getBeta2().convertToDouble();
    Term g = update.gradient, lr = update.lr, step = update.scalar(adamw.getStep());
    Term first = beta1 * update.state(adamw.getFirst()) + (1 - beta1) * g;
    Term second = beta2 * update.state(adamw.getSecond()) + (1 - beta2) * (g * g);
    Term size = lr / (1.0 - power(step.splat(beta1), step));
    Term root = sqrt(1.0 - power(step.splat(beta2), step));
    Term weight = update.weight * update.spread(1.0 - lr * update.decay);
    Term moved = weight - update.spread(size) *
                              (first / (sqrt(second) / update.spread(root) + adamw.getEpsilon().convertToDouble()));
    return {update.newWeight(moved), update.newState(first, adamw.getFirst()),
            update.newState(second, adamw.getSecond())};
  }
};

struct LionDecomposition : DecomposableOpInterface::ExternalModel<LionDecomposition, LionOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto lion = cast<LionOp>(op);
    Update update(lion, builder);
    double beta1 = lion.getBeta1().convertToDouble(), beta2 = lion.getBeta2().convertToDouble();
    Term g = update.gradient, m = update.state(lion.getMomentum());
    Term direction = sign(beta1 * m + (1 - beta1) * g) + update.weight * update.decay;
    Term momentum = beta2 * m + (1 - beta2) * g;
    return {update.newWeight(update.weight - update.spread(update.lr) * direction),
            update.newState(momentum, lion.getMomentum())};
  }
};

/// Newton and Schulz's iteration on a matrix; the shorter side is that of the Gram matrix.
Term orthogonalize(Term x) {
  bool tall = x.getShape()[0] > x.getShape()[1];
  SmallVector<int64_t> own{tall ? 1 : 0}, other{tall ? 0 : 1};
  auto dot = [&](Term lhs, Term rhs, ArrayRef<int64_t> left, ArrayRef<int64_t> right) {
    return x.with(buildDot(x.getBuilder(), x.getLoc(), lhs, rhs, left, right, {}, {}));
  };
  Term norm = sqrt((x * x).reduce(ReduceKind::sum, {0, 1}));
  norm = norm.with(MaximumOp::create(x.getBuilder(), x.getLoc(), norm, norm.splat(muon::minNorm)));
  x = x / norm.broadcast(x.getShape());
  for (int64_t step = 0; step < muon::steps; ++step) {
    Term gram = dot(x, x, other, other);
    Term change = muon::second * gram + muon::third * dot(gram, gram, {1}, {0});
    x = muon::first * x + (tall ? dot(x, change, own, {0}) : dot(change, x, {1}, own));
  }
  return x;
}

struct MuonDecomposition : DecomposableOpInterface::ExternalModel<MuonDecomposition, MuonOp> {
  SmallVector<Value> decompose(Operation *op, OpBuilder &builder) const {
    auto own = cast<MuonOp>(op);
    Update update(own, builder);
    double mu = own.getMomentum().convertToDouble();
    Term g = update.gradient, momentum = mu * update.state(own.getBuffer()) + (1 - mu) * g;
    Term direction = own.getNesterov() ? mu * momentum + (1 - mu) * g : momentum;
    ArrayRef<int64_t> shape = update.weight.getShape();
    Term size = update.lr * muon::scaleOf(shape[0], shape[1]);
    Term kept = update.weight * update.spread(1.0 - update.lr * update.decay);
    return {update.newWeight(kept - update.spread(size) * orthogonalize(direction)),
            update.newState(momentum, own.getBuffer())};
  }
};

} // namespace

void registerOptimizerDecompositions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attachOnce<SgdOp, SgdDecomposition>(*context);
    attachOnce<MomentumOp, MomentumDecomposition>(*context);
    attachOnce<AdamwOp, AdamwDecomposition>(*context);
    attachOnce<LionOp, LionDecomposition>(*context);
    attachOnce<MuonOp, MuonDecomposition>(*context);
  });
}

} // namespace par
