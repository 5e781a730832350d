// Which of the library's two routines is faster for a shape.
#include "par/core/Failure.h"
#include "par/cpu/Matmul.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace par::cpu {

using format::Call;

namespace {

constexpr double smallestTried = 1 << 24;
/// The primitive must be faster by this factor, so that noise does not choose it.
constexpr double margin = 0.93;

/// A leading stride, shorter where matrices would get too big, with the alignment of its rows kept.
int64_t cutStride(int64_t stride) { return stride > 8192 ? 4096 + stride % 4096 : stride; }

/// The call cut to about a hundred million multiplications.
Call cut(Call call) {
  for (size_t d = 0; d < call.batch.size(); ++d)
    call.batch[d] = std::min<int64_t>(call.batch[d], d + 1 == call.batch.size() ? 4 : 1);
  call.lda = cutStride(call.lda);
  call.ldb = cutStride(call.ldb);
  call.ldc = cutStride(call.ldc);
  call.k = std::min<int64_t>(call.k, 1024);
  call.n = std::min<int64_t>(call.n, 2048);
  call.m = std::min<int64_t>(call.m, std::max<int64_t>(64, (int64_t(1) << 27) / std::max<int64_t>(1, call.k * call.n)));
  return call;
}

/// Nanoseconds of the quickest of three runs after one to warm up.
double nanoseconds(const Matmul &matmul, const std::vector<float> &a, const std::vector<float> &b,
                   const std::vector<float> &bias, std::vector<float> &c, void *workspace, bool withBias) {
  double best = 1e300;
  for (int turn = 0; turn < 4; ++turn) {
    auto start = std::chrono::steady_clock::now();
    matmul.run(a.data(), b.data(), withBias ? bias.data() : nullptr, c.data(), workspace);
    std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    if (turn > 0)
      best = std::min(best, taken.count());
  }
  return best;
}

} // namespace

bool worthTrying(const Call &call) {
  double work = static_cast<double>(call.m) * static_cast<double>(call.n) * static_cast<double>(call.k);
  for (int64_t size : call.batch)
    work *= static_cast<double>(size);
  return work >= smallestTried;
}

MatmulChoice tryMatmul(const Call &call) {
  if (!worthTrying(call))
    return MatmulChoice::Sgemm;
  try {
    Call small = cut(call);
    auto sgemm = makeMatmul(small, MatmulChoice::Sgemm, ""), primitive = makeMatmul(small, MatmulChoice::Primitive, "");
    makeMatmul(call, MatmulChoice::Primitive, ""); // refused where the whole product wants too much workspace
    std::vector<float> a(small.extent('a'), 0.5f), b(small.extent('b'), 0.25f), c(small.extent('c')), bias(small.n);
    std::vector<std::byte> workspace(small.workspace);
    double first = nanoseconds(*sgemm, a, b, bias, c, workspace.data(), small.bias);
    double second = nanoseconds(*primitive, a, b, bias, c, workspace.data(), small.bias);
    return second < margin * first ? MatmulChoice::Primitive : MatmulChoice::Sgemm;
  } catch (const core::Failure &) {
    return MatmulChoice::Sgemm; // the primitive cannot compute it within its workspace
  }
}

} // namespace par::cpu
