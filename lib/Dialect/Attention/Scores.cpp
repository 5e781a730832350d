#include "Scores.h"

using namespace mlir;

namespace par {

Value Scores::rows(Value perHead) const {
  auto type = cast<RankedTensorType>(perHead.getType());
  return place.with(perHead).reshape({heads.batch, heads.groups, heads.repeats * heads.queries, type.getDimSize(3)});
}

Term Scores::build() const {
  SmallVector<int64_t> shape{heads.batch, heads.heads, heads.queries, heads.keys};
  Term scores = scaled(dot(query, key, 3, 3, heads.inner).reshape(shape));
  if (mask)
    scores = scores + place.with(mask).convert(heads.inner).broadcast({0, 1, 2, 3}, shape);
  if (!causal)
    return scores;
  auto index = RankedTensorType::get({heads.queries, heads.keys}, place.getBuilder().getI64Type());
  auto iota = [&](int64_t dim) { return place.with(IotaOp::create(place.getBuilder(), place.getLoc(), index, dim)); };
  Term meets = iota(1).compare(Predicate::le, iota(0)).broadcast({2, 3}, shape);
  // The lowest number of f32, which e^x takes to 0 as it does minus infinity.
  return meets.select(scores, scores.splat(-3.4028234663852886e38));
}

Term Scores::probabilities(Value lse) const {
  Term powers = exp(build() - spread(place.with(lse)));
  return powers / spread(powers.reduce(ReduceKind::sum, 3));
}

Term Scores::scaled(Term scores) const {
  double near = static_cast<float>(scale);
  if (heads.inner.isF64() || near == scale)
    return scores * scale;
  // An f32 scale is rounded; the second term adds the rest of it.
  return scores * near + scores * (scale - near);
}

Term Scores::attend(Term probabilities) const {
  return dot(narrowRows(probabilities), value, 3, 2, heads.element).reshape(heads.attendedType().getShape());
}

Term Scores::cotangent(Term probabilities, Value cotangent, Value attended) const {
  Term ct = place.with(cotangent);
  Term products = dot(rows(ct), value, 3, 3, heads.inner).reshape(probabilities.getShape());
  Term whole = (ct.convert(heads.inner) * ct.with(attended).convert(heads.inner)).reduce(ReduceKind::sum, 3);
  return probabilities * (products - spread(whole));
}

Term Scores::ofQuery(Term scores) const {
  return dot(narrowRows(scaled(scores)), key, 3, 2, heads.element)
      .reshape({heads.batch, heads.heads, heads.queries, heads.width});
}

Term Scores::ofKeys(Term scores, Value rowsOfQueries) const {
  return dot(narrowRows(scores), rows(rowsOfQueries), 2, 2, heads.element);
}

Term Scores::ofMask(Term scores) const {
  auto type = cast<RankedTensorType>(mask.getType());
  SmallVector<int64_t> dims;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (size == 1)
      dims.push_back(dim);
  Term sum = dims.empty() ? scores : scores.reduce(ReduceKind::sum, dims);
  return sum.reshape(type.getShape()).convert(type.getElementType());
}

} // namespace par
