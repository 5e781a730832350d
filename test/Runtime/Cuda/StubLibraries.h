// Tells the runtime to open the stubs instead of a GPU's libraries, in this process.
#pragma once

#include "Machine.h"

#include <cstdlib>

namespace par::toy {

inline void useStubs() {
  setenv("PAR_CUDA_LIBRARY", PAR_STUB_CUDA, 1);
#ifdef PAR_STUB_CUBLASLT
  setenv("PAR_CUBLASLT_LIBRARY", PAR_STUB_CUBLASLT, 1);
#endif
#ifdef PAR_STUB_NCCL
  setenv("PAR_NCCL_LIBRARY", PAR_STUB_NCCL, 1);
#endif
}

} // namespace par::toy
