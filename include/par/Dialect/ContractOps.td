#ifndef PAR_DIALECT_CONTRACTOPS_TD
#define PAR_DIALECT_CONTRACTOPS_TD

include "par/Dialect/Types.td"

def Par_DotOp : Par_TensorOp<"dot", (ins Par_NumberTensor:$lhs, Par_NumberTensor:$rhs,
    DenseI64ArrayAttr:$lhs_contracting, DenseI64ArrayAttr:$rhs_contracting,
    DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$lhs_batching, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$rhs_batching),
    (outs Par_NumberTensor:$result)> {
  let summary = "product of two tensors, summed over the contracting dims";
  let description = [{
    The result has the batching dims, then the other dims of lhs, then those of rhs, each in operand order. The
    result's element type may be wider than the operands': the sums accumulate in it, without a rounding in between.

    Example: `%2 = par.dot %0, %1 contracting [2] x [1] batching [0] x [0]
      : (tensor<6x4x8xf32>, tensor<6x8x5xf32>) -> tensor<6x4x5xf32>`
  }];
  let assemblyFormat = [{$lhs `,` $rhs `contracting` $lhs_contracting `x` $rhs_contracting
    (`batching` $lhs_batching^ `x` $rhs_batching)? attr-dict `:` functional-type(operands, results)}];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The dims of lhs (rhs) that are neither contracting nor batching, in order.
    ::llvm::SmallVector<int64_t> getLhsFree();
    ::llvm::SmallVector<int64_t> getRhsFree();
    /// Result shape of the given operands.
    static ::llvm::SmallVector<int64_t> inferShape(::llvm::ArrayRef<int64_t> lhs, ::llvm::ArrayRef<int64_t> rhs,
        ::llvm::ArrayRef<int64_t> lhsContracting, ::llvm::ArrayRef<int64_t> rhsContracting,
        ::llvm::ArrayRef<int64_t> lhsBatching, ::llvm::ArrayRef<int64_t> rhsBatching);
  }];
}

#endif
