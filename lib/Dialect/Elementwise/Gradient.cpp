// Gradients of elementwise ops, one formula an op, as terms over the cotangent, the operands and the result. Ties of
// min and max give half to each operand, as in PyTorch.
#include "par/Dialect/Attach.h"
#include "par/Dialect/Interfaces/Differentiable.h"
#include "par/Dialect/Splat.h"
#include "par/Dialect/Term.h"

#include <numbers>

using namespace mlir;

namespace par {
namespace {

using Cotangents = FailureOr<SmallVector<Value>>;

/// f'(x) ct of a unary op: `formula` gets the cotangent, the operand and the result.
template <typename Op, Term (*formula)(Term ct, Term x, Term y)>
struct UnaryGradient : DifferentiableOpInterface::ExternalModel<UnaryGradient<Op, formula>, Op> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    Term ct(builder, op->getLoc(), cotangents.front());
    return SmallVector<Value>{formula(ct, ct.with(op->getOperand(0)), ct.with(op->getResult(0)))};
  }
};

/// Piecewise constant: nothing flows back.
template <typename Op>
struct FlatGradient : DifferentiableOpInterface::ExternalModel<FlatGradient<Op>, Op> {
  Cotangents differentiate(Operation *, OpBuilder &, ArrayRef<Value>) const { return SmallVector<Value>{Value()}; }
};

/// `formula` gets the cotangent, both operands and the result, and returns both cotangents.
template <typename Op, std::pair<Term, Term> (*formula)(Term ct, Term x, Term y, Term z)>
struct BinaryGradient : DifferentiableOpInterface::ExternalModel<BinaryGradient<Op, formula>, Op> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    Term ct(builder, op->getLoc(), cotangents.front());
    auto [lhs, rhs] = formula(ct, ct.with(op->getOperand(0)), ct.with(op->getOperand(1)), ct.with(op->getResult(0)));
    return SmallVector<Value>{lhs, rhs};
  }
};

//===-- Formulas -----------------------------------------------------------------------------===//

Term ofNegate(Term ct, Term, Term) { return -ct; }
Term ofAbs(Term ct, Term x, Term) { return ct * sign(x); }
Term ofExp(Term ct, Term, Term y) { return ct * y; }
Term ofLog(Term ct, Term x, Term) { return ct / x; }
Term ofSqrt(Term ct, Term, Term y) { return ct * 0.5 / y; }
Term ofRsqrt(Term ct, Term, Term y) { return ct * -0.5 * (y * y * y); }
Term ofReciprocal(Term ct, Term, Term y) { return -(ct * (y * y)); }
Term ofTanh(Term ct, Term, Term y) { return ct * (1.0 - y * y); }
Term ofErf(Term ct, Term x, Term) { return ct * 2.0 * std::numbers::inv_sqrtpi * exp(-(x * x)); }
Term ofSigmoid(Term ct, Term, Term y) { return ct * (y * (1.0 - y)); }
Term ofSin(Term ct, Term x, Term) { return ct * cos(x); }
Term ofAtan(Term ct, Term x, Term) { return ct / (1.0 + x * x); }
Term ofCos(Term ct, Term x, Term) { return -(ct * sin(x)); }

std::pair<Term, Term> ofAdd(Term ct, Term, Term, Term) { return {ct, ct}; }
std::pair<Term, Term> ofSubtract(Term ct, Term, Term, Term) { return {ct, -ct}; }
std::pair<Term, Term> ofMultiply(Term ct, Term x, Term y, Term) { return {ct * y, ct * x}; }
std::pair<Term, Term> ofDivide(Term ct, Term, Term y, Term z) {
  Term part = ct / y;
  return {part, -(part * z)};
}
/// z = x - y trunc(x / y).
std::pair<Term, Term> ofRemainder(Term ct, Term x, Term y, Term z) { return {ct, -(ct * ((x - z) / y))}; }

/// If both are equal, each gets half of the cotangent, as in PyTorch.
std::pair<Term, Term> byChoice(Predicate chosen, Term ct, Term x, Term y) {
  Term left = x.compare(chosen, y), zero = ct.splat(0);
  if (readSplat(x) || readSplat(y)) // at the bound itself the value gets no cotangent, as for ReLU at 0
    return {left.select(ct, zero), left.select(zero, ct)};
  Term equal = x.compare(Predicate::eq, y), half = ct * 0.5;
  return {left.select(ct, equal.select(half, zero)), left.select(zero, equal.select(half, ct))};
}
std::pair<Term, Term> ofMaximum(Term ct, Term x, Term y, Term) { return byChoice(Predicate::gt, ct, x, y); }
std::pair<Term, Term> ofMinimum(Term ct, Term x, Term y, Term) { return byChoice(Predicate::lt, ct, x, y); }

/// x^y: the base gets y x^(y-1), 0 for y = 0; the exponent x^y log x, 0 where x is 0 and y is not negative.
std::pair<Term, Term> ofPower(Term ct, Term x, Term y, Term z) {
  Term zero = ct.splat(0);
  Term base = ct * (y * power(x, y - 1.0));
  Term isFlat =
      x.compare(Predicate::eq, zero).select(y.compare(Predicate::ge, zero), zero.compare(Predicate::ne, zero));
  return {y.compare(Predicate::eq, zero).select(zero, base), isFlat.select(zero, ct * z * log(x))};
}

//===-- Ops that need more than their operands -----------------------------------------------===//

struct SelectGradient : DifferentiableOpInterface::ExternalModel<SelectGradient, SelectOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    Term ct(builder, op->getLoc(), cotangents.front()), zero = ct.splat(0);
    Term condition = ct.with(cast<SelectOp>(op).getCondition());
    return SmallVector<Value>{Value(), condition.select(ct, zero), condition.select(zero, ct)};
  }
};

struct ConvertGradient : DifferentiableOpInterface::ExternalModel<ConvertGradient, ConvertOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    Type element = getElementTypeOrSelf(op->getOperand(0).getType());
    if (!isa<FloatType>(element))
      return SmallVector<Value>{Value()};
    return SmallVector<Value>{buildConvert(builder, op->getLoc(), cotangents.front(), element)};
  }
};

struct GeluGradient : DifferentiableOpInterface::ExternalModel<GeluGradient, GeluOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto gelu = cast<GeluOp>(op);
    return SmallVector<Value>{
        GeluGradOp::create(builder, op->getLoc(), cotangents.front(), gelu.getOperand(), gelu.getTanh())};
  }
};

struct ConstrainGradient : DifferentiableOpInterface::ExternalModel<ConstrainGradient, ConstrainOp> {
  Cotangents differentiate(Operation *op, OpBuilder &builder, ArrayRef<Value> cotangents) const {
    auto constrain = cast<ConstrainOp>(op);
    return SmallVector<Value>{ConstrainOp::create(builder, op->getLoc(), cotangents.front(), constrain.getSharding(),
                                                  constrain.getPriority())};
  }
};

template <typename Op, Term (*formula)(Term, Term, Term)>
void attach(MLIRContext *context) {
  attachOnce<Op, UnaryGradient<Op, formula>>(*context);
}
template <typename Op, std::pair<Term, Term> (*formula)(Term, Term, Term, Term)>
void attach(MLIRContext *context) {
  attachOnce<Op, BinaryGradient<Op, formula>>(*context);
}

} // namespace

void registerElementwiseGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ParDialect *) {
    attach<NegateOp, ofNegate>(context);
    attach<AbsOp, ofAbs>(context);
    attach<ExpOp, ofExp>(context);
    attach<LogOp, ofLog>(context);
    attach<SqrtOp, ofSqrt>(context);
    attach<RsqrtOp, ofRsqrt>(context);
    attach<ReciprocalOp, ofReciprocal>(context);
    attach<TanhOp, ofTanh>(context);
    attach<ErfOp, ofErf>(context);
    attach<SigmoidOp, ofSigmoid>(context);
    attach<SinOp, ofSin>(context);
    attach<CosOp, ofCos>(context);
    attach<AtanOp, ofAtan>(context);
    attach<AddOp, ofAdd>(context);
    attach<SubtractOp, ofSubtract>(context);
    attach<MultiplyOp, ofMultiply>(context);
    attach<DivideOp, ofDivide>(context);
    attach<RemainderOp, ofRemainder>(context);
    attach<MaximumOp, ofMaximum>(context);
    attach<MinimumOp, ofMinimum>(context);
    attach<PowerOp, ofPower>(context);
    attachOnce<SignOp, FlatGradient<SignOp>>(*context);
    attachOnce<FloorOp, FlatGradient<FloorOp>>(*context);
    attachOnce<CeilOp, FlatGradient<CeilOp>>(*context);
    attachOnce<RoundOp, FlatGradient<RoundOp>>(*context);
    attachOnce<SelectOp, SelectGradient>(*context);
    attachOnce<ConvertOp, ConvertGradient>(*context);
    attachOnce<GeluOp, GeluGradient>(*context);
    attachOnce<ConstrainOp, ConstrainGradient>(*context);
  });
}

} // namespace par
