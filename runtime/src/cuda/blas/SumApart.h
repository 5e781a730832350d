// The sum of a product's operand over what is contracted, where the library is not to add it up beside the
// product: products with ones, of parts and of what these give.
#pragma once

#include "par/cuda/blas/Products.h"

namespace par::cuda {

/// CUBLAS_STATUS_NOT_SUPPORTED.
constexpr int notSupported = 15;

class SumApart {
public:
  /// Of a call with the epilogue sum_a or sum_b. Runs of it follow one another: they share what lies between
  /// the products.
  SumApart(const Gpu &gpu, const Blas &blas, const format::Call &call, uint32_t alignment);

  /// Of the product, with the first of each of the sums' products. Empty if one has none.
  std::vector<Algorithms> propose() const;
  /// As Product's.
  int check(const Algorithms &algorithms) const;
  void choose(const Algorithms &algorithms);
  void run(void *const *operands, Stream stream);

private:
  bool ofA;
  format::Call productCall, partsCall, wholeCall;
  std::unique_ptr<Product> product, parts, whole;
  Block ones, wideOnes, partial;
};

} // namespace par::cuda
