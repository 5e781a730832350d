// The sum of a matmul's operand over the contracted dim, without the library's epilogue: matmuls with ones sum parts,
// then the parts' sums.
#pragma once

#include "par/cuda/blas/Gemm.h"

namespace par::cuda {

/// CUBLAS_STATUS_NOT_SUPPORTED.
constexpr int notSupported = 15;

class StandaloneBiasGradient {
public:
  /// For a call with the epilogue sum_a or sum_b. Runs share the buffer between the matmuls, so they must not overlap.
  StandaloneBiasGradient(const Gpu &gpu, const Blas &blas, const format::Call &call, uint32_t alignment);

  /// Proposals for the matmul, each with the first proposals of the sum's matmuls. Empty if one has none.
  std::vector<Algorithms> propose() const;
  /// As Product's.
  int check(const Algorithms &algorithms) const;
  void choose(const Algorithms &algorithms);
  void run(void *const *operands, Stream stream);

private:
  bool ofA;
  format::Call productCall, partsCall, wholeCall;
  std::unique_ptr<Gemm> product, parts, whole;
  DeviceBuffer ones, wideOnes, partial;
};

} // namespace par::cuda
