// oneDNN's product of two matrices, for kernels and calls.
#pragma once

#include <cstdint>

namespace par::kernels {

/// A matrix by rows, `stride` elements from one to the next.
struct MatrixRows {
  const float *data;
  int64_t stride;
};

/// C[m, n] = alpha op(A) op(B) + beta C, summed over k; `trans` is 'N' or 'T', as in BLAS. Signals are held meanwhile.
/// Throws std::runtime_error if the library refuses, mostly for want of memory: C is undefined then.
void sgemm(char transA, char transB, int64_t m, int64_t n, int64_t k, float alpha, MatrixRows a, MatrixRows b,
           float beta, float *c, int64_t strideC);

} // namespace par::kernels
