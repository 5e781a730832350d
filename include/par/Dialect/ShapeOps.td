#ifndef PAR_DIALECT_SHAPEOPS_TD
#define PAR_DIALECT_SHAPEOPS_TD

include "par/Dialect/Types.td"

// Ops that move elements without computing.

def Par_ConstantOp : Par_TensorOp<"constant", (ins ElementsAttr:$value), (outs Par_Tensor:$result),
    [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a constant; a splat, or at most 1,024 elements";
  let description = "Example: `%0 = par.constant dense<1.0> : tensor<4x8xf32>`";
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Par_IotaOp : Par_TensorOp<"iota", (ins I64Attr:$dim), (outs Par_Tensor:$result)> {
  let summary = "each element is its index along one dim";
  let description = "Example: `%0 = par.iota dim 1 : tensor<4x8xi64>`";
  let assemblyFormat = "`dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Par_BroadcastInDimOp : Par_TensorOp<"broadcast_in_dim", (ins Par_Tensor:$operand, DenseI64ArrayAttr:$dims),
    (outs Par_Tensor:$result)> {
  let summary = "repeats along new dims and dims of size 1";
  let description = [{
    Operand dim i becomes result dim dims[i]; `dims` rises strictly; a size of 1 is stretched.

    Example: `%1 = par.broadcast_in_dim %0 dims [1] : tensor<8xf32> to tensor<4x8xf32>`
  }];
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Par_ReshapeOp : Par_TensorOp<"reshape", (ins Par_Tensor:$operand), (outs Par_Tensor:$result)> {
  let summary = "the same elements in row-major order under another shape";
  let description = "Example: `%1 = par.reshape %0 : tensor<4x8xf32> to tensor<4x2x4xf32>`";
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Par_TransposeOp : Par_TensorOp<"transpose", (ins Par_Tensor:$operand, DenseI64ArrayAttr:$permutation),
    (outs Par_Tensor:$result), [InferTypeOpAdaptor]> {
  let summary = "result dim i is operand dim permutation[i]";
  let description = "Example: `%1 = par.transpose %0 [1, 0] : tensor<4x8xf32> to tensor<8x4xf32>`";
  let assemblyFormat = "$operand $permutation attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
}

def Par_SliceOp : Par_TensorOp<"slice", (ins Par_Tensor:$operand, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$limits,
    DenseI64ArrayAttr:$strides), (outs Par_Tensor:$result), [InferTypeOpAdaptor]> {
  let summary = "elements [start, limit) of every dim, with positive strides";
  let description = "Example: `%1 = par.slice %0 [0, 2] to [4, 8] by [1, 2] : tensor<4x8xf32> to tensor<4x3xf32>`";
  let assemblyFormat = "$operand $starts `to` $limits `by` $strides attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
}

def Par_ReverseOp : Par_TensorOp<"reverse", (ins Par_Tensor:$operand, DenseI64ArrayAttr:$dims),
    (outs Par_Tensor:$result),
    [SameOperandsAndResultType]> {
  let summary = "the last element along each of some dims becomes the first";
  let description = "Example: `%1 = par.reverse %0 dims [1] : tensor<4x8xf32>`";
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Par_DynamicSliceOp : Par_TensorOp<"dynamic_slice", (ins Par_Tensor:$operand, Par_IntTensor:$start, I64Attr:$dim,
    I64Attr:$size), (outs Par_Tensor:$result), [InferTypeOpAdaptor]> {
  let summary = "`size` elements along one dim from a start known when running";
  let description = [{
    The start is an integer scalar; start + size must not pass the dim.

    Example: `%1 = par.dynamic_slice %0 at %i dim 0 size 2 : tensor<4x8xf32>, tensor<i64> to tensor<2x8xf32>`
  }];
  let assemblyFormat = [{$operand `at` $start `dim` $dim `size` $size attr-dict
    `:` type($operand) `,` type($start) `to` type($result)}];
}

def Par_UpdateSliceOp : Par_TensorOp<"update_slice", (ins Par_Tensor:$operand, Par_Tensor:$update,
    Par_IntTensor:$start, I64Attr:$dim), (outs Par_Tensor:$result), [AllTypesMatch<["operand", "result"]>]> {
  let summary = "the operand with a part along one dim replaced, at a start known when running";
  let description = [{
    Example: `%1 = par.update_slice %0, %u at %i dim 0 : tensor<4x8xf32>, tensor<2x8xf32>, tensor<i64>`
  }];
  let assemblyFormat = [{$operand `,` $update `at` $start `dim` $dim attr-dict
    `:` type($operand) `,` type($update) `,` type($start)}];
  let hasVerifier = 1;
}

def Par_PadOp : Par_TensorOp<"pad", (ins Par_Tensor:$operand, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
    TypedAttrInterface:$value), (outs Par_Tensor:$result), [InferTypeOpAdaptor]> {
  let summary = "adds a constant before and after every dim; no negative padding";
  let description = "Example: `%1 = par.pad %0 low [0, 1] high [0, 0] value 0.0 : f32 : tensor<4x8xf32> to "
                    "tensor<4x9xf32>`";
  let assemblyFormat = "$operand `low` $low `high` $high `value` $value attr-dict `:` type($operand) `to` "
                       "type($result)";
}

def Par_ConcatOp : Par_TensorOp<"concat", (ins Variadic<Par_Tensor>:$inputs, I64Attr:$dim), (outs Par_Tensor:$result),
    [InferTypeOpAdaptor]> {
  let summary = "joins tensors along one dim";
  let description = "Example: `%2 = par.concat %0, %1 dim 1 : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>`";
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` functional-type($inputs, $result)";
}

#endif
