#include "IndexBounds.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <initializer_list>

using namespace mlir;

namespace par::codegen {
namespace {

/// A number that is as far as numbers go stays there, and is where a result goes that no 64 bits hold.
bool isFar(int64_t x) { return x == IndexBounds::lowest || x == IndexBounds::highest; }

int64_t add(int64_t x, int64_t y, int64_t unknown) {
  int64_t sum;
  return isFar(x) || isFar(y) || __builtin_add_overflow(x, y, &sum) ? unknown : sum;
}

IndexBounds boundsOfSum(IndexBounds x, IndexBounds y) {
  return {add(x.low, y.low, IndexBounds::lowest), add(x.high, y.high, IndexBounds::highest)};
}

int64_t multiply(int64_t x, int64_t y) {
  int64_t product;
  if (x == 0 || y == 0)
    return 0;
  bool far = isFar(x) || isFar(y) || __builtin_mul_overflow(x, y, &product);
  return far ? ((x < 0) != (y < 0) ? IndexBounds::lowest : IndexBounds::highest) : product;
}

int64_t divideDown(int64_t x, int64_t by) { return isFar(x) ? x : llvm::divideFloorSigned(x, by); }

IndexBounds boundsOfProduct(IndexBounds x, IndexBounds y) {
  std::initializer_list<int64_t> corners{multiply(x.low, y.low), multiply(x.low, y.high), multiply(x.high, y.low),
                                         multiply(x.high, y.high)};
  return {std::min(corners), std::max(corners)};
}

/// x mod by, which is never negative: x itself if that is within one period.
IndexBounds boundsOfRemainder(IndexBounds x, int64_t by) {
  if (!isFar(x.low) && !isFar(x.high) && divideDown(x.low, by) == divideDown(x.high, by)) {
    int64_t begin = divideDown(x.low, by) * by;
    return {x.low - begin, x.high - begin};
  }
  return {0, by - 1};
}

} // namespace

IndexBounds boundsOf(AffineExpr expr, llvm::function_ref<IndexBounds(unsigned)> ofDim) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return {constant.getValue(), constant.getValue()};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return ofDim(dim.getPosition());
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return {};
  IndexBounds x = boundsOf(binary.getLHS(), ofDim), y = boundsOf(binary.getRHS(), ofDim);
  if (expr.getKind() == AffineExprKind::Add)
    return boundsOfSum(x, y);
  if (expr.getKind() == AffineExprKind::Mul)
    return boundsOfProduct(x, y);
  if (y.low != y.high || y.low < 1)
    return {}; // no division of indices
  if (expr.getKind() == AffineExprKind::Mod)
    return boundsOfRemainder(x, y.low);
  if (expr.getKind() == AffineExprKind::CeilDiv)
    x = boundsOfSum(x, {y.low - 1, y.low - 1});
  return {divideDown(x.low, y.low), divideDown(x.high, y.low)};
}

} // namespace par::codegen
