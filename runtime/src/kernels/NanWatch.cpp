#include "NanWatch.h"

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
bool isRaised() { return _mm_getcsr() & _MM_EXCEPT_INVALID; }
void raise() { _mm_setcsr(_mm_getcsr() | _MM_EXCEPT_INVALID); }
void lower() {
  if (isRaised()) // a read is cheaper than a write
    _mm_setcsr(_mm_getcsr() & ~_MM_EXCEPT_INVALID);
}
#else
bool isRaised() { return true; }
void raise() {}
void lower() {}
#endif

/// Takes one thread's flag into a std::atomic<bool>.
void takeFlag(void *found) {
  if (isRaised())
    static_cast<std::atomic<bool> *>(found)->store(true, std::memory_order_relaxed);
  lower();
}

} // namespace

NanWatch::NanWatch() : wasRaised(isRaised()) { lower(); }

NanWatch::~NanWatch() {
  if (wasRaised)
    raise();
}

bool NanWatch::mayHaveMetOne() {
  static const unsigned runtime = dnnl_version()->cpu_runtime;
  std::atomic<bool> found = false;
  if (runtime == DNNL_RUNTIME_SEQ || (omp_get_max_threads && omp_get_max_threads() == 1))
    takeFlag(&found);
  else if (runtime == DNNL_RUNTIME_OMP && GOMP_parallel)
    GOMP_parallel(takeFlag, &found, /*threads: as many as the library's*/ 0, 0);
  else
    return true; // threads that cannot be asked
  return found;
}

} // namespace par::kernels
