#pragma once

#include "par/Dialect/Par.h"

#include <optional>

namespace par {

/// What a call does to P = op(A) op(B) before it writes it; see Epilogue of the bundle's format.
struct MatmulEpilogue {
  llvm::StringRef name; ///< "gelu", "gelu_aux", "gelu_grad", "sum_a", "sum_b"; "none": a row is added
  /// A row that is added to P first: an argument of the kernel.
  std::optional<unsigned> bias;
  /// Which of the kernel's results C is, and where the tensor beside it, or the sum, is.
  unsigned result = 0;
  std::optional<unsigned> auxArgument, auxResult;
};

/// One library call that does the work of a kernel with the implementation "library:matmul":
/// C[m,n] = op(A) op(B) + beta C for every index of `batch`, row-major, strides in elements. The fields are those of
/// a call in a role's program; `lhs`, `rhs` say which argument of the kernel is A and which is B (the product may have
/// been turned round, C^T = B^T A^T, so A need not be the dot's first operand). C is the kernel's one result,
/// if there is no epilogue.
struct MatmulCall {
  unsigned lhs = 0, rhs = 1;
  /// Of A and B: f32, or bf16 or f16 where C may be f32 all the same. Sums are of f32.
  mlir::Type operandType, resultType;
  /// The argument tied to the result, whose value the product is added to (beta = 1); none: beta = 0.
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

/// The call that a kernel's body amounts to: one f32 dot, transposes and reshapes of its operands and of its result
/// folded into strides, widenings of both operands from bf16 or f16 and perhaps a narrowing of the result to the same,
/// and, where the result is tied, an add of that argument; or, from one product without a batch on, ops that amount to
/// an epilogue; or the sum of an operand over what is contracted, as a second result. None if the body is something
/// else, or if no strides of the call express the layout.
std::optional<MatmulCall> describeMatmul(KernelOp kernel);

} // namespace par
