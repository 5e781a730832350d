// The matrix products of a bundle, computed by oneDNN's sgemm and nothing else: the peer of what the runtime
// reaches.
//
// Reads one product a line, "transA transB m n k lda ldb ldc batch beta", and answers each with the quickest
// and the median seconds of its repetitions (CPU time of the calling thread: neighbours do not count).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dnnl.h>
#include <memory>
#include <vector>

namespace {

struct Product {
  int transA, transB;
  int64_t m, n, k, lda, ldb, ldc, batch;
  float beta;
};

using Buffer = std::unique_ptr<float, decltype(&std::free)>;

/// `count` floats of `value`, on a 64-byte boundary: a misaligned right-hand matrix loses a fifth.
Buffer filled(int64_t count, float value) {
  auto *data = static_cast<float *>(std::aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64));
  std::fill_n(data, count, value);
  return {data, &std::free};
}

double threadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Seconds of each repetition, quickest first; the one that warms up is left out.
std::vector<double> measure(const Product &p, int repetitions) {
  int64_t sizeA = (p.transA ? p.k : p.m) * p.lda, sizeB = (p.transB ? p.n : p.k) * p.ldb, sizeC = p.m * p.ldc;
  Buffer a = filled(sizeA * p.batch, 0.5f), b = filled(sizeB * p.batch, 0.25f);
  Buffer c = filled(sizeC * p.batch, 0.0f);
  std::vector<double> seconds;
  for (int turn = 0; turn <= repetitions; ++turn) {
    double start = threadSeconds();
    for (int64_t i = 0; i < p.batch; ++i)
      dnnl_sgemm(p.transA ? 'T' : 'N', p.transB ? 'T' : 'N', p.m, p.n, p.k, 1.0f, a.get() + i * sizeA, p.lda,
                 b.get() + i * sizeB, p.ldb, p.beta, c.get() + i * sizeC, p.ldc);
    if (turn > 0)
      seconds.push_back(threadSeconds() - start);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

} // namespace

int main(int argc, char **argv) {
  int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 3;
  Product p;
  while (std::scanf("%d %d %ld %ld %ld %ld %ld %ld %ld %f", &p.transA, &p.transB, &p.m, &p.n, &p.k, &p.lda,
                    &p.ldb, &p.ldc, &p.batch, &p.beta) == 10) {
    std::vector<double> seconds = measure(p, repetitions);
    std::printf("%.9f %.9f\n", seconds.front(), seconds[seconds.size() / 2]);
    std::fflush(stdout);
  }
}
