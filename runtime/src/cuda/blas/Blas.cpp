#include "par/cuda/blas/Gemm.h"
#include "par/messages/Failure.h"

namespace par::cuda {

using core::Failure;
using core::Message;

namespace {

constexpr LibraryName blasName{"cuBLASLt", "libcublasLt.so", "PAR_CUBLASLT_LIBRARY"};
constexpr size_t minBlas = 120000;

std::string blasVersionText(size_t number) {
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100);
}

/// The names that the library goes by, newest first: only the first ends in no number where a toolkit is
/// installed.
Library openBlas() {
  try {
    return Library(blasName);
  } catch (const Failure &) {
    for (const char *file : {"libcublasLt.so.13", "libcublasLt.so.12"})
      try {
        return Library({blasName.word, file, blasName.environment});
      } catch (const Failure &) {
        continue;
      }
    throw;
  }
}

} // namespace

Blas::Blas() : library(openBlas()) {
#define PAR_BLAS_BIND(NAME, RESULT, SYMBOL, PARAMETERS) cuda::bind(library, NAME, SYMBOL);
  PAR_BLAS_ENTRIES(PAR_BLAS_BIND)
#undef PAR_BLAS_BIND
  library.requireVersion(version() >= minBlas, blasVersionText(version()), blasVersionText(minBlas));
  if (int status = create(&handle))
    throw Failure::at("", Message::cudaFailed, "cublasLtCreate", "status " + std::to_string(status));
}

Blas::~Blas() { destroy(handle); }

std::string Blas::describe() const { return "cuBLASLt " + blasVersionText(version()); }

std::string Blas::release() const { return blasVersionText(version()) + "." + std::to_string(version() % 100); }

void Blas::check(int status, const std::string &call, const char *what) const {
  if (status != 0)
    throw Failure::at("", Message::blasFailed, call, what, status);
}

} // namespace par::cuda
