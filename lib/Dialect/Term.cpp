#include "par/Dialect/Term.h"

using namespace mlir;

namespace par {

template <typename Op>
static Term build(Term operand) {
  return operand.with(Op::create(operand.getBuilder(), operand.getLoc(), operand));
}
template <typename Op>
static Term build(Term lhs, Term rhs) {
  return lhs.with(Op::create(lhs.getBuilder(), lhs.getLoc(), lhs, rhs));
}

Term operator+(Term lhs, Term rhs) { return build<AddOp>(lhs, rhs); }
Term operator-(Term lhs, Term rhs) { return build<SubtractOp>(lhs, rhs); }
Term operator*(Term lhs, Term rhs) { return build<MultiplyOp>(lhs, rhs); }
Term operator/(Term lhs, Term rhs) { return build<DivideOp>(lhs, rhs); }
Term operator-(Term operand) { return build<NegateOp>(operand); }
Term exp(Term operand) { return build<ExpOp>(operand); }
Term log(Term operand) { return build<LogOp>(operand); }
Term sqrt(Term operand) { return build<SqrtOp>(operand); }
Term rsqrt(Term operand) { return build<RsqrtOp>(operand); }
Term tanh(Term operand) { return build<TanhOp>(operand); }
Term erf(Term operand) { return build<ErfOp>(operand); }
Term sin(Term operand) { return build<SinOp>(operand); }
Term cos(Term operand) { return build<CosOp>(operand); }
Term sign(Term operand) { return build<SignOp>(operand); }
Term power(Term base, Term exponent) { return build<PowerOp>(base, exponent); }
Term minimum(Term lhs, Term rhs) { return build<MinimumOp>(lhs, rhs); }

Term Term::transpose(ArrayRef<int64_t> permutation) const {
  if (llvm::is_sorted(permutation))
    return *this;
  return with(TransposeOp::create(*builder, loc, value, permutation));
}

Term Term::reduce(ReduceKind kind, ArrayRef<int64_t> dims) const {
  if (dims.empty())
    return *this;
  return with(ReduceOp::create(*builder, loc, kind, value, dims));
}

Term Term::reduceKeeping(ReduceKind kind, ArrayRef<int64_t> dims) const {
  return reduce(kind, dims).broadcast(otherDims(getType().getRank(), dims), getShape());
}

Term Term::compare(Predicate predicate, Value other) const {
  return with(CompareOp::create(*builder, loc, predicate, value, other));
}

Term Term::select(Value onTrue, Value onFalse) const {
  return with(SelectOp::create(*builder, loc, onTrue.getType(), value, onTrue, onFalse));
}

SmallVector<int64_t> dimRange(int64_t first, int64_t last) { return llvm::to_vector(llvm::seq<int64_t>(first, last)); }

SmallVector<int64_t> otherDims(int64_t rank, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> others;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(dims, dim))
      others.push_back(dim);
  return others;
}

} // namespace par
