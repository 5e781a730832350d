#include "par/cuda/comm/Nccl.h"

#include <cstdlib>

namespace par::cuda {

namespace {

/// Before the library is opened: one launch order over all communicators of a GPU, which is the program's;
/// and all connections at the start, not at first use, which may be while something is captured.
LibraryName withEnvironment() {
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1);
  setenv("NCCL_RUNTIME_CONNECT", "0", 1);
  return {"NCCL", "libnccl.so.2", "PAR_NCCL_LIBRARY"};
}

std::string ncclVersionText(int number) {
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
}

} // namespace

Nccl::Nccl() : library(withEnvironment()) {
#define PAR_NCCL_BIND(NAME, RESULT, SYMBOL, PARAMETERS) cuda::bind(library, NAME, SYMBOL);
  PAR_NCCL_ENTRIES(PAR_NCCL_BIND)
#undef PAR_NCCL_BIND
  getVersion(&version);
  // Older ones have no implicit launch order, and hang where communicators meet in different orders.
  library.requireVersion(version >= minNccl, ncclVersionText(version), ncclVersionText(minNccl));
}

std::string Nccl::describe() const { return "NCCL " + ncclVersionText(version); }

} // namespace par::cuda
