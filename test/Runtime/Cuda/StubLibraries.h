// Makes the runtime open the stubs instead of a GPU's libraries, in this process, and reads their logs.
#pragma once

#include "Machine.h"
#include "par/messages/Failure.h"

#include <cstdlib>

namespace par::toy {

inline void useStubs() {
  setenv("PAR_CUDA_LIBRARY", PAR_STUB_CUDA, 1);
#ifdef PAR_STUB_CUBLASLT
  setenv("PAR_CUBLASLT_LIBRARY", PAR_STUB_CUBLASLT, 1);
#endif
#ifdef PAR_STUB_CUDNN
  setenv("PAR_CUDNN_LIBRARY", PAR_STUB_CUDNN, 1);
#endif
#ifdef PAR_STUB_NCCL
  setenv("PAR_NCCL_LIBRARY", PAR_STUB_NCCL, 1);
#endif
}

/// The message of `body`'s failure; "" if it does not fail.
template <typename Body>
std::string failureOf(Body body) {
  try {
    body();
  } catch (const core::Failure &failure) {
    return failure.what();
  }
  return "";
}

} // namespace par::toy
