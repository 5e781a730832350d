#pragma once

#include "par/Dialect/Interfaces/Lowerable.h"
#include "par/Dialect/Par.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace par {

/// The values of one lowered op.
using Lowered = llvm::FailureOr<llvm::SmallVector<mlir::Value>>;
/// Computes one element from the elements of the inputs. `mlir::linalg::IndexOp`s in it give the iteration's
/// indices.
using ElementBody = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

/// A linalg.generic over the elements of `type`, all parallel; input i is read through maps[i].
mlir::Value buildElements(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                          mlir::ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> maps, ElementBody body);
/// The same with inputs of the result's shape.
mlir::Value buildElements(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                          mlir::ValueRange inputs, ElementBody body);

/// A linalg.generic that reduces: the result is read and written through resultMap, whose missing dims are reduced. The
/// body's last argument is the accumulated value, initially `start`.
mlir::Value buildReduction(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                           mlir::TypedAttr start, mlir::ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> maps,
                           mlir::AffineMap resultMap, ElementBody body);

/// Attribute of a reduction that counts: an element of the result is the number of elements along the dim that precede
/// it in a total order. The body compares two elements.
inline constexpr llvm::StringLiteral countsEarlier = "par.counts_earlier";

/// The neutral element of a reduction of this kind, and the combination of two elements.
mlir::TypedAttr getNeutral(mlir::OpBuilder &builder, ReduceKind kind, mlir::Type type);
mlir::Value buildCombination(mlir::OpBuilder &builder, mlir::Location loc, ReduceKind kind, mlir::Value x,
                             mlir::Value y);

/// Index of the iteration along `dim`, and constants, as values of the index type.
mlir::Value buildIndex(mlir::OpBuilder &builder, mlir::Location loc, int64_t dim);
mlir::Value buildIndexConstant(mlir::OpBuilder &builder, mlir::Location loc, int64_t value);
/// A zero, or a number, of an element type.
mlir::Value buildNumber(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type, double value);

/// The number in a type of its kind that is as wide or wider.
mlir::Value buildPromote(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type type);

/// Addition that a reduction may reorder (reassoc, contract), and a multiplication that may be contracted with it. Not
/// for elementwise ops, which must round equally wherever they are fused.
mlir::Value buildSum(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lhs, mlir::Value rhs);
mlir::Value buildProduct(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lhs, mlir::Value rhs);

} // namespace par
