#ifndef PAR_DIALECT_REDUCEOPS_TD
#define PAR_DIALECT_REDUCEOPS_TD

include "par/Dialect/Types.td"

def Par_ReduceOp : Par_TensorOp<"reduce", (ins Par_ReduceKindAttr:$kind, Par_Tensor:$operand, DenseI64ArrayAttr:$dims),
    (outs Par_Tensor:$result), [InferTypeOpAdaptor]> {
  let summary = "combines all elements along some dims, which vanish";
  let description = "Example: `%1 = par.reduce sum %0 dims [1] : tensor<4x8xf32> to tensor<4xf32>`";
  let assemblyFormat = "$kind $operand `dims` $dims attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
}

def Par_ArgReduceOp : Par_TensorOp<"arg_reduce", (ins Par_ReduceKindAttr:$kind, Par_NumberTensor:$operand,
    I64Attr:$dim),
    (outs Par_IntTensor:$result), [InferTypeOpAdaptor]> {
  let summary = "index (i64) of the first largest (max) or smallest (min) element along a dim, which vanishes";
  let description = "Example: `%1 = par.arg_reduce max %0 dim 1 : tensor<4x8xf32> to tensor<4xi64>`";
  let assemblyFormat = "$kind $operand `dim` $dim attr-dict `:` type($operand) `to` type($result)";
}

def Par_CumulativeOp : Par_TensorOp<"cumulative", (ins Par_ReduceKindAttr:$kind, Par_NumberTensor:$operand,
    I64Attr:$dim, DefaultValuedAttr<BoolAttr, "false">:$exclusive, DefaultValuedAttr<BoolAttr, "false">:$reverse),
    (outs Par_NumberTensor:$result), [SameOperandsAndResultType]> {
  let summary = "running combination along a dim";
  let description = "Example: `%1 = par.cumulative sum %0 dim 1 : tensor<4x8xf32>`";
  let assemblyFormat = "$kind $operand `dim` $dim attr-dict `:` type($result)";
}

def Par_SortedPositionOp : Par_TensorOp<"sorted_position", (ins Par_NumberTensor:$operand, I64Attr:$dim,
    DefaultValuedAttr<BoolAttr, "false">:$descending), (outs Par_IntTensor:$result), [InferTypeOpAdaptor]> {
  let summary = "place (i64) of each element among those along a dim, once they are sorted";
  let description = [{
    Equal elements keep their order; NaN counts as largest. Putting each element's index at its position gives the
    indices that sort: `par.scatter_add %iota, %positions`.

    Example: `%1 = par.sorted_position %0 dim 1 {descending = true} : tensor<4x8xf32> to tensor<4x8xi64>`
  }];
  let assemblyFormat = "$operand `dim` $dim attr-dict `:` type($operand) `to` type($result)";
}

#endif
