#pragma once

#include "par/Dialect/Par.h"

namespace par {

/// A value in a formula: arithmetic on terms builds elementwise ops at the builder's place, so that gradients
/// and decompositions read like the equations they come from. Two terms have one type; a number is a splat of
/// the other term's type.
///
///     Term x(builder, loc, operand), y = tanh(x);
///     return ct * (1.0 - y * y);
class Term {
public:
  Term(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value) : builder(&builder), loc(loc), value(value) {}

  operator mlir::Value() const { return value; }
  mlir::RankedTensorType getType() const { return llvm::cast<mlir::RankedTensorType>(value.getType()); }
  llvm::ArrayRef<int64_t> getShape() const { return getType().getShape(); }
  mlir::OpBuilder &getBuilder() const { return *builder; }
  mlir::Location getLoc() const { return loc; }

  /// Another value built at the same place.
  Term with(mlir::Value other) const { return Term(*builder, loc, other); }
  /// A splat of this term's type.
  Term splat(double number) const { return with(buildSplat(*builder, loc, getType(), number)); }
  /// Repeated to `shape`: dim i of this term becomes dim dims[i].
  Term broadcast(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> shape) const {
    return with(buildBroadcast(*builder, loc, value, dims, shape));
  }
  /// A scalar repeated to `shape`.
  Term broadcast(llvm::ArrayRef<int64_t> shape) const { return broadcast({}, shape); }
  Term reshape(llvm::ArrayRef<int64_t> shape) const { return with(buildReshape(*builder, loc, value, shape)); }
  Term transpose(llvm::ArrayRef<int64_t> permutation) const;
  Term convert(mlir::Type elementType) const { return with(buildConvert(*builder, loc, value, elementType)); }
  /// Combined along `dims`, which vanish.
  Term reduce(ReduceKind kind, llvm::ArrayRef<int64_t> dims) const;
  /// As reduce, but the dims stay and every element along them has the result.
  Term reduceKeeping(ReduceKind kind, llvm::ArrayRef<int64_t> dims) const;
  /// An i1 tensor.
  Term compare(Predicate predicate, mlir::Value other) const;
  Term compare(Predicate predicate, double other) const { return compare(predicate, splat(other)); }
  /// With an i1 term: onTrue where it holds, else onFalse.
  Term select(mlir::Value onTrue, mlir::Value onFalse) const;

private:
  mlir::OpBuilder *builder;
  mlir::Location loc;
  mlir::Value value;
};

Term operator+(Term lhs, Term rhs);
Term operator-(Term lhs, Term rhs);
Term operator*(Term lhs, Term rhs);
Term operator/(Term lhs, Term rhs);
inline Term operator+(Term lhs, double rhs) { return lhs + lhs.splat(rhs); }
inline Term operator-(Term lhs, double rhs) { return lhs - lhs.splat(rhs); }
inline Term operator*(Term lhs, double rhs) { return lhs * lhs.splat(rhs); }
inline Term operator/(Term lhs, double rhs) { return lhs / lhs.splat(rhs); }
inline Term operator+(double lhs, Term rhs) { return rhs.splat(lhs) + rhs; }
inline Term operator-(double lhs, Term rhs) { return rhs.splat(lhs) - rhs; }
inline Term operator*(double lhs, Term rhs) { return rhs.splat(lhs) * rhs; }
inline Term operator/(double lhs, Term rhs) { return rhs.splat(lhs) / rhs; }
Term operator-(Term operand);
Term exp(Term operand);
Term log(Term operand);
Term sqrt(Term operand);
Term rsqrt(Term operand);
Term tanh(Term operand);
Term erf(Term operand);
Term sin(Term operand);
Term cos(Term operand);
Term sign(Term operand);
Term power(Term base, Term exponent);
Term minimum(Term lhs, Term rhs);

/// The numbers from `first` to before `last`: dims.
llvm::SmallVector<int64_t> dimRange(int64_t first, int64_t last);
/// The dims below `rank` that are not in `dims`, rising.
llvm::SmallVector<int64_t> otherDims(int64_t rank, llvm::ArrayRef<int64_t> dims);

} // namespace par
