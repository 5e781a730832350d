#include "Sampling.h"

namespace par {

using namespace mlir;

namespace {

/// An element along one dim that a sample touches.
struct Tap {
  Term index;                 ///< i64, in range
  std::optional<Term> weight; ///< none: 1
};

Term floorOf(Term x) { return x.with(FloorOp::create(x.getBuilder(), x.getLoc(), x)); }

/// To the nearest whole number, the even one of two.
Term roundEven(Term x) {
  Term up = floorOf(x + 0.5), half = up * 0.5;
  Term isTie = (up - x).compare(Predicate::eq, 0.5), isOdd = half.compare(Predicate::ne, floorOf(half));
  return x.with(AndOp::create(x.getBuilder(), x.getLoc(), isTie, isOdd)).select(up - 1.0, up);
}

/// Keys' cubic convolution with a = -0.75, at distances 1 + f, f, 1 - f and 2 - f (IEEE ASSP 29(6), 1981, eq.
/// 4).
SmallVector<Term> cubicWeights(Term f) {
  constexpr double a = -0.75;
  auto near = [&](Term d) { return ((a + 2) * d - (a + 3)) * d * d + 1.0; };
  auto far = [&](Term d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(f + 1.0), near(f), near(1.0 - f), far(2.0 - f)};
}

Term both(Term a, Term b) { return a.with(AndOp::create(a.getBuilder(), a.getLoc(), a, b)); }

/// Clamps to [low, high]; NaN becomes `low`, so that an index computed from it is valid.
Term clampTo(Term x, double low, double high) {
  return x.compare(Predicate::ge, low).select(x.compare(Predicate::le, high).select(x, x.splat(high)), x.splat(low));
}

/// v reflected to and fro between two borders: a triangular wave of twice their distance.
Term reflect(Term v, double low, double high) {
  double period = 2 * (high - low);
  if (period <= 0)
    return v.splat(low);
  Term shifted = v - low, phase = shifted - floorOf(shifted / period) * period;
  return phase.compare(Predicate::le, high - low).select(phase, period - phase) + low;
}

struct Border {
  double low, high;
};
Border borderOf(int64_t size, const Sampling &sampling) {
  return sampling.corners ? Border{0, double(size - 1)} : Border{-0.5, double(size) - 0.5};
}

Tap tapAt(Term position, std::optional<Term> weight, int64_t size, const Sampling &sampling) {
  double last = double(size - 1);
  if (sampling.outside == Outside::Zero) {
    Term inside = both(position.compare(Predicate::ge, 0), position.compare(Predicate::le, last));
    weight = weight ? inside.select(*weight, weight->splat(0)) : inside.convert(position.getType().getElementType());
  } else if (sampling.outside == Outside::Reflect) {
    Border border = borderOf(size, sampling);
    position = reflect(position, border.low, border.high);
  }
  return {clampTo(position, 0, last).convert(position.getBuilder().getI64Type()), weight};
}

SmallVector<Tap> tapsOf(Term at, int64_t size, const Sampling &sampling) {
  if (sampling.interpolation == Interpolation::Nearest)
    return {tapAt(roundEven(at), {}, size, sampling)};
  bool linear = sampling.interpolation == Interpolation::Linear;
  Term first = floorOf(at), f = at - first;
  SmallVector<Term> weights = linear ? SmallVector<Term>{1.0 - f, f} : cubicWeights(f);
  SmallVector<Tap> taps;
  for (auto [i, weight] : llvm::enumerate(weights))
    taps.push_back(tapAt(first + double(int64_t(i) - (linear ? 0 : 1)), weight, size, sampling));
  return taps;
}

} // namespace

Term bringInside(Term at, int64_t size, const Sampling &sampling) {
  if (sampling.outside == Outside::Zero)
    return at;
  Border border = borderOf(size, sampling);
  Term inside = both(at.compare(Predicate::ge, border.low), at.compare(Predicate::le, border.high));
  bool reflects = sampling.outside == Outside::Reflect;
  return inside.select(at, reflects ? reflect(at, border.low, border.high) : clampTo(at, 0, double(size - 1)));
}

SmallVector<Term> sampleTerms(Term image, ArrayRef<int64_t> dims, ArrayRef<Term> at, const Sampling &sampling) {
  // Every combination of one tap along each dim.
  SmallVector<Tap> combined;
  for (auto [size, coordinate] : llvm::zip(dims, at)) {
    SmallVector<Tap> next;
    for (const Tap &tap : tapsOf(coordinate, size, sampling)) {
      if (combined.empty())
        next.push_back(tap);
      for (const Tap &before : combined) {
        std::optional<Term> weight = before.weight ? before.weight : tap.weight;
        if (before.weight && tap.weight)
          weight = *before.weight * *tap.weight;
        next.push_back({before.index * double(size) + tap.index, weight});
      }
    }
    combined = std::move(next);
  }
  SmallVector<int64_t> shape(image.getShape());
  shape[2] = at[0].getShape()[1];
  SmallVector<Term> terms;
  for (const Tap &tap : combined) {
    Value indices = tap.index.broadcast({0, 2}, shape);
    Term value =
        image.with(TakeOp::create(image.getBuilder(), image.getLoc(), image.getType().clone(shape), image, indices, 2));
    if (tap.weight)
      value = value * tap.weight->convert(image.getType().getElementType()).broadcast({0, 2}, shape);
    terms.push_back(value);
  }
  return terms;
}

Term sampleSum(Term image, ArrayRef<int64_t> dims, ArrayRef<Term> at, const Sampling &sampling) {
  SmallVector<Term> terms = sampleTerms(image, dims, at, sampling);
  Term sum = terms[0];
  for (Term term : ArrayRef(terms).drop_front())
    sum = sum + term;
  return sum;
}

Term progression(NodeImporter &importer, Type element, ArrayRef<int64_t> shape, int64_t dim, double first,
                 double step) {
  auto type = RankedTensorType::get(shape, importer.builder.getI64Type());
  Term index = termOf(importer, IotaOp::create(importer.builder, importer.loc, type, dim)).convert(element);
  return index * step + first;
}

} // namespace par
