#pragma once

#include "par/Dialect/Par.h"

#include <optional>

namespace par {

/// A call's epilogue: it changes P = op(A) op(B) before it is written; see Epilogue of the bundle's format.
struct MatmulEpilogue {
  llvm::StringRef name; ///< "gelu", "gelu_aux", "gelu_grad", "sum_a", "sum_b"; "none": a row is added
  /// A row that is added to P first: an argument of the kernel.
  std::optional<unsigned> bias;
  /// Which of the kernel's results C is, and where the tensor beside it, or the sum, is.
  unsigned result = 0;
  std::optional<unsigned> auxArgument, auxResult;
};

/// One library call that does the work of a kernel with the implementation "library:matmul": C[m,n] = op(A) op(B) +
/// beta C for every index of `batch`, row-major, strides in elements. The fields are those of a call in a role's
/// program; `lhs`, `rhs` are the kernel's arguments for A and B. The call may compute the transpose, C^T = B^T A^T, so
/// A need not be the dot's first operand. C is the kernel's one result, if there is no epilogue.
struct MatmulCall {
  unsigned lhs = 0, rhs = 1;
  /// Type of A and B: f32, bf16 or f16; with bf16 and f16, C may still be f32. Sums are in f32.
  mlir::Type operandType, resultType;
  /// The argument tied to the result, to which the matmul is added (beta = 1); none: beta = 0.
  std::optional<unsigned> accumulator;
  std::optional<MatmulEpilogue> epilogue;
  mlir::SmallVector<int64_t> batch;
  int64_t m = 1, n = 1, k = 1;
  bool transA = false, transB = false;
  int64_t lda = 1, ldb = 1, ldc = 1;
  /// One stride for each batch dim; 0 repeats the matrix (never for C).
  mlir::SmallVector<int64_t> strideA, strideB, strideC;

  double getBeta() const { return accumulator ? 1 : 0; }
};

/// The GEMM that computes a kernel's body; none if there is no such call. Supported bodies:
/// - one f32 dot, with transposes and reshapes of its operands and result folded into strides, converts of both
/// operands from bf16 or f16 to f32, a convert of the result to the same type, and an add of the argument if the result
/// is tied;
/// - one matmul without batch dims, and ops that an epilogue of the library computes;
/// - one matmul, with the sum of an operand over the contracted dims as a second result.
std::optional<MatmulCall> describeMatmul(KernelOp kernel);

} // namespace par
