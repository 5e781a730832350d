#include "par/Base/HostCores.h"

#include "llvm/Support/Threading.h"

namespace par {

unsigned coresOfHost() {
  static const unsigned cores = llvm::hardware_concurrency().compute_thread_count();
  return cores;
}

} // namespace par
