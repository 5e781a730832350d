#include "par/kernels/Sgemm.h"

#include "par/format/SignalsHeld.h"

#include <dnnl.h>
#include <stdexcept>
#include <string>

void par::kernels::sgemm(char transA, char transB, int64_t m, int64_t n, int64_t k, float alpha, MatrixRows a,
                         MatrixRows b, float beta, float *c, int64_t strideC) {
  format::SignalsHeld held;
  dnnl_status_t status =
      dnnl_sgemm(transA, transB, m, n, k, alpha, a.data, a.stride, b.data, b.stride, beta, c, strideC);
  if (status == dnnl_success)
    return;
  std::string said =
      "oneDNN refused a matmul of " + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
  throw std::runtime_error(
      said + (status == dnnl_out_of_memory ? ": out of memory" : " (status " + std::to_string(status) + ")"));
}
