#include "FloatWatch.h"

#include <atomic>
#include <dnnl.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

// The OpenMP runtime that the library was linked with, if any, has these; a program of another compiler has its own.
extern "C" void GOMP_parallel(void (*function)(void *), void *data, unsigned threads, unsigned flags)
    __attribute__((weak));
extern "C" int omp_get_max_threads() __attribute__((weak));

namespace par::kernels {
namespace {

#ifdef __x86_64__
constexpr unsigned nanFlag = _MM_EXCEPT_INVALID, overflowFlag = _MM_EXCEPT_OVERFLOW;
unsigned raised() { return _mm_getcsr() & (nanFlag | overflowFlag); }
void raise(unsigned flags) { _mm_setcsr(_mm_getcsr() | flags); }
void lower() {
  if (raised()) // a read is cheaper than a write
    _mm_setcsr(_mm_getcsr() & ~(nanFlag | overflowFlag));
}
#else
constexpr unsigned nanFlag = 1, overflowFlag = 2;
unsigned raised() { return nanFlag | overflowFlag; }
void raise(unsigned) {}
void lower() {}
#endif

/// Takes one thread's flags into a std::atomic<unsigned>.
void takeFlags(void *found) {
  if (unsigned flags = raised())
    static_cast<std::atomic<unsigned> *>(found)->fetch_or(flags, std::memory_order_relaxed);
  lower();
}

} // namespace

FloatWatch::FloatWatch() : before(raised()) { lower(); }

FloatWatch::~FloatWatch() {
  if (before)
    raise(before);
}

FloatFlags FloatWatch::read() {
  static const unsigned runtime = dnnl_version()->cpu_runtime;
  std::atomic<unsigned> found = 0;
  if (runtime == DNNL_RUNTIME_SEQ || (omp_get_max_threads && omp_get_max_threads() == 1))
    takeFlags(&found);
  else if (runtime == DNNL_RUNTIME_OMP && GOMP_parallel)
    GOMP_parallel(takeFlags, &found, /*threads: as many as the library's*/ 0, 0);
  else
    found = nanFlag | overflowFlag; // threads that cannot be asked
  return {(found & nanFlag) != 0, (found & overflowFlag) != 0};
}

} // namespace par::kernels
