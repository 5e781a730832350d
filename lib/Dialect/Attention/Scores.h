#pragma once

#include "par/Dialect/Attention.h"
#include "par/Dialect/Term.h"

namespace par {

/// Attention as matmuls and elementwise ops. Scores are [b, h, sq, sk]; in matmuls the heads that share keys and values
/// are rows of one matrix: [b, g, repeats · sq, ...].
class Scores {
public:
  template <typename Op>
  Scores(Op op, mlir::OpBuilder &builder)
      : heads(op), place(builder, op.getLoc(), op.getQuery()), query(rows(op.getQuery())), key(op.getKey()),
        value(op.getValue()), mask(op.getMask()), scale(op.getScale().convertToDouble()), causal(op.getCausal()) {}

  /// scale q k^T, masked.
  Term build() const;
  /// p v, with the probabilities in the operands' format.
  Term attend(Term probabilities) const;
  /// A number of each query at all its scores.
  Term spread(Term perQuery) const {
    return perQuery.broadcast({0, 1, 2}, {heads.batch, heads.heads, heads.queries, heads.keys});
  }
  /// e^(s - lse), divided by its sum over the keys: that is not 1 where lse had no room for log of their number beside
  /// scores that a mask made large.
  Term probabilities(mlir::Value lse) const;
  /// By the scale.
  Term scaled(Term scores) const;
  /// Cotangent of the masked and scaled scores: p (ct v^T - sum(ct attended)).
  Term cotangent(Term probabilities, mlir::Value cotangent, mlir::Value attended) const;
  /// scale t k.
  Term ofQuery(Term scores) const;
  /// t^T x for rows x of the queries: of the keys, with x the queries, and of the values, with x the cotangent.
  Term ofKeys(Term scores, mlir::Value rowsOfQueries) const;
  /// The scores' cotangent, summed over the dims along which the mask is broadcast.
  Term ofMask(Term scores) const;

  const Heads heads;

private:
  mlir::Value rows(mlir::Value perHead) const;
  Term dot(mlir::Value lhs, mlir::Value rhs, int64_t lhsDim, int64_t rhsDim, mlir::Type element) const {
    return place.with(
        buildDot(place.getBuilder(), place.getLoc(), lhs, rhs, {lhsDim}, {rhsDim}, {0, 1}, {0, 1}, element));
  }
  /// The scores as rows of matmuls, in the operands' format.
  mlir::Value narrowRows(Term scores) const { return rows(scores.convert(heads.element)); }

  Term place; ///< where ops are built
  mlir::Value query, key, value, mask;
  double scale;
  bool causal;
};

} // namespace par
