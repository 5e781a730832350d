// Matmuls by cuBLASLt. Its matrices are column-major: the row-major C = op(A) op(B) is computed as its transpose,
// op(B)^T op(A)^T, whose operands are the same bytes. Matmuls are f32, bf16 or f16 and add in f32.
#pragma once

#include "par/cuda/driver/Gpu.h"
#include "par/format/Program.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace par::cuda {

using BlasHandle = struct BlasObject *;
using BlasDescriptor = struct BlasDescriptorObject *;
using BlasLayout = struct BlasLayoutObject *;
using BlasPreference = struct BlasPreferenceObject *;

/// cublasLtMatmulAlgo_t: opaque, and may be kept, sent and used by other ranks on the same kind of GPU.
using BlasAlgorithm = std::array<uint64_t, 8>;

/// The algorithms of a call's matmuls: one, or two or three if separate matmuls compute its sum.
using Algorithms = std::vector<BlasAlgorithm>;

/// cublasLtMatmulHeuristicResult_t.
struct BlasHeuristic {
  BlasAlgorithm algorithm{};
  size_t workspace = 0;
  int state = 0;
  float waves = 0;
  int reserved[4] = {};
};

#define PAR_BLAS_ENTRIES(M)                                                                                            \
  M(version, size_t, "cublasLtGetVersion", ())                                                                         \
  M(create, int, "cublasLtCreate", (BlasHandle *))                                                                     \
  M(destroy, int, "cublasLtDestroy", (BlasHandle))                                                                     \
  M(descriptorCreate, int, "cublasLtMatmulDescCreate", (BlasDescriptor *, int compute, int scale))                     \
  M(descriptorDestroy, int, "cublasLtMatmulDescDestroy", (BlasDescriptor))                                             \
  M(descriptorSet, int, "cublasLtMatmulDescSetAttribute", (BlasDescriptor, int name, const void *, size_t bytes))      \
  M(layoutCreate, int, "cublasLtMatrixLayoutCreate",                                                                   \
    (BlasLayout *, int type, uint64_t rows, uint64_t columns, int64_t leading))                                        \
  M(layoutDestroy, int, "cublasLtMatrixLayoutDestroy", (BlasLayout))                                                   \
  M(layoutSet, int, "cublasLtMatrixLayoutSetAttribute", (BlasLayout, int name, const void *, size_t bytes))            \
  M(preferenceCreate, int, "cublasLtMatmulPreferenceCreate", (BlasPreference *))                                       \
  M(preferenceDestroy, int, "cublasLtMatmulPreferenceDestroy", (BlasPreference))                                       \
  M(preferenceSet, int, "cublasLtMatmulPreferenceSetAttribute",                                                        \
    (BlasPreference, int name, const void *, size_t bytes))                                                            \
  M(heuristic, int, "cublasLtMatmulAlgoGetHeuristic",                                                                  \
    (BlasHandle, BlasDescriptor, BlasLayout a, BlasLayout b, BlasLayout c, BlasLayout d, BlasPreference, int wanted,   \
     BlasHeuristic *, int *found))                                                                                     \
  M(algorithmCheck, int, "cublasLtMatmulAlgoCheck",                                                                    \
    (BlasHandle, BlasDescriptor, BlasLayout a, BlasLayout b, BlasLayout c, BlasLayout d, const BlasAlgorithm *,        \
     BlasHeuristic *))                                                                                                 \
  M(matmul, int, "cublasLtMatmul",                                                                                     \
    (BlasHandle, BlasDescriptor, const void *alpha, const void *a, BlasLayout, const void *b, BlasLayout,              \
     const void *beta, const void *c, BlasLayout, void *d, BlasLayout, const BlasAlgorithm *, void *workspace,         \
     size_t workspaceBytes, Stream))

/// cuBLASLt, opened: 12.0 or later.
class Blas {
public:
  Blas();
  ~Blas();
#define PAR_BLAS_MEMBER(NAME, RESULT, SYMBOL, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  PAR_BLAS_ENTRIES(PAR_BLAS_MEMBER)
#undef PAR_BLAS_MEMBER
  BlasHandle handle = nullptr;
  /// "cuBLASLt 13.1.0".
  std::string describe() const;
  /// "13.1.0".
  std::string release() const;
  /// Throws core::Failure unless the status is 0.
  void check(int status, const std::string &call, const char *what) const;

private:
  Library library;
};

/// A call's batch as cuBLASLt takes it: `count` matrices a fixed stride apart, repeated at `outer` offsets
/// (elements).
struct BatchFold {
  int64_t count = 1, strideA = 0, strideB = 0, strideC = 0;
  struct Offset {
    int64_t a = 0, b = 0, c = 0;
  };
  std::vector<Offset> outer{{}};
};
BatchFold foldBatch(const format::Call &call);

class StandaloneBiasGradient;

/// A matmul that is ready to run.
class Gemm {
public:
  /// `alignment`: of all operands, in bytes. Throws core::Failure for types that cannot be multiplied.
  Gemm(const Gpu &gpu, const Blas &blas, const format::Call &call, uint32_t alignment);
  Gemm(Gemm &&) = delete;
  ~Gemm();

  /// The heuristic's proposals, best first, all within the call's workspace and with the same bits in every run. For a
  /// call with a sum, the proposals for a separate matmul and sum follow. Throws core::Failure if there are none.
  std::vector<Algorithms> propose() const;
  /// The heuristic's proposals for the call as one matmul with its sum; may be empty.
  std::vector<BlasAlgorithm> ask() const;
  /// 0 if the library takes these algorithms for the call and the call's workspace suffices, else a status.
  int check(const Algorithms &algorithms) const;
  void choose(const Algorithms &algorithms);
  /// Operands in the call's order: A, B, bias if any, aux if any, C, workspace if any.
  void run(void *const *operands, Stream stream);

private:
  void finish(int type);
  StandaloneBiasGradient &standaloneBiasGradient() const;
  void destroyAll();

  const Gpu &gpu;
  const Blas &blas;
  const format::Call &call;
  BatchFold batch;
  BlasDescriptor descriptor = nullptr;
  BlasLayout a = nullptr, b = nullptr, c = nullptr;
  BlasAlgorithm chosen{};
  mutable std::unique_ptr<StandaloneBiasGradient> apart; ///< of a call with a sum, where that is asked for
  bool isApart = false;
  uint32_t alignment;
  float alpha, beta;
};

} // namespace par::cuda
