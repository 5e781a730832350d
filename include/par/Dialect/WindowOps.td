#ifndef PAR_DIALECT_WINDOWOPS_TD
#define PAR_DIALECT_WINDOWOPS_TD

include "par/Dialect/Types.td"

// Ops whose windows slide over the trailing, spatial dims of a tensor. Along a spatial dim of size s, padded by `low`
// before and `high` after (either may be negative, which crops), a window of k elements at a distance of `dilation`
// starts at every multiple of `stride`: there are (s + low + high - (k - 1) dilation - 1) / stride + 1 windows, rounded
// down, and element j of window x is element x stride + j dilation - low.

class Par_WindowOp<string mnemonic, dag operands, dag window, dag results, list<Trait> traits = [], dag more = (ins)>
    : Par_TensorOp<mnemonic, !con(operands, window, (ins DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$low,
                                                         DenseI64ArrayAttr:$high, DenseI64ArrayAttr:$dilations), more),
                   results, traits> {
  let hasVerifier = 1;
}

class Par_ConvolutionLikeOp<string mnemonic, dag operands>
    : Par_WindowOp<mnemonic, operands, (ins), (outs Par_FloatTensor:$result), [],
                   (ins DefaultValuedAttr<I64Attr, "1">:$groups)>;

def Par_ConvolutionOp : Par_ConvolutionLikeOp<"convolution", (ins Par_FloatTensor:$operand, Par_FloatTensor:$filter)> {
  let summary = "convolution of [N, C, ...] with [O, C / groups, ...]: [N, O, ...]";
  let description = [{
    Group g of the output channels sums over group g of the input channels. The result's element type may be wider than
    the operands': the sums accumulate in it, without a rounding in between.

    Example: `%2 = par.convolution %0, %1 strides [1, 1] low [1, 1] high [1, 1] dilations [1, 1]
      : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x8x8xf32>`
  }];
  let assemblyFormat = [{$operand `,` $filter `strides` $strides `low` $low `high` $high `dilations` $dilations
    (`groups` $groups^)? attr-dict `:` functional-type(operands, results)}];
}

def Par_ConvolutionInputGradOp : Par_ConvolutionLikeOp<"convolution_input_grad",
    (ins Par_FloatTensor:$cotangent, Par_FloatTensor:$filter)> {
  let summary = "cotangent of a convolution's operand, or a transposed convolution: [N, O, ...] to [N, C, ...]";
  let description = [{
    The adjoint in the operand of the convolution with these attributes that takes the result's shape to the
    cotangent's.

    Example: `%2 = par.convolution_input_grad %ct, %w strides [2] low [1] high [1] dilations [1]
      : (tensor<2x4x4xf32>, tensor<4x3x3xf32>) -> tensor<2x3x8xf32>`
  }];
  let assemblyFormat = [{$cotangent `,` $filter `strides` $strides `low` $low `high` $high `dilations` $dilations
    (`groups` $groups^)? attr-dict `:` functional-type(operands, results)}];
}

def Par_ConvolutionFilterGradOp : Par_ConvolutionLikeOp<"convolution_filter_grad",
    (ins Par_FloatTensor:$operand, Par_FloatTensor:$cotangent)> {
  let summary = "cotangent of a convolution's filter: [N, C, ...] and [N, O, ...] to [O, C / groups, ...]";
  let description = [{
    The adjoint in the filter of the convolution with these attributes that takes the operand's shape to the
    cotangent's, by a filter of the result's shape.

    Example: `%2 = par.convolution_filter_grad %x, %ct strides [2] low [1] high [1] dilations [1]
      : (tensor<2x3x8xf32>, tensor<2x4x4xf32>) -> tensor<4x3x3xf32>`
  }];
  let assemblyFormat = [{$operand `,` $cotangent `strides` $strides `low` $low `high` $high `dilations` $dilations
    (`groups` $groups^)? attr-dict `:` functional-type(operands, results)}];
}

def Par_PatchesOp : Par_WindowOp<"patches", (ins Par_Tensor:$operand), (ins DenseI64ArrayAttr:$window),
    (outs Par_Tensor:$result), [], (ins TypedAttrInterface:$value)> {
  let summary = "every window of the trailing dims as dims of its own: [..., s...] to [..., windows..., window...]";
  let description = [{
    Elements out of bounds are `value`. A reduction of the last dims makes a pool.

    Example: `%1 = par.patches %0 window [3] strides [2] low [1] high [1] dilations [1] value 0.0 : f32
      : tensor<2x4x8xf32> to tensor<2x4x4x3xf32>`
  }];
  let assemblyFormat = [{$operand `window` $window `strides` $strides `low` $low `high` $high `dilations` $dilations
    `value` $value attr-dict `:` type($operand) `to` type($result)}];
}

def Par_FoldPatchesOp : Par_WindowOp<"fold_patches", (ins Par_NumberTensor:$operand), (ins),
    (outs Par_NumberTensor:$result)> {
  let summary = "adds windows where they came from: the adjoint of patches";
  let description = [{
    Elements outside the result are dropped.

    Example: `%1 = par.fold_patches %0 strides [2] low [1] high [1] dilations [1]
      : tensor<2x4x4x3xf32> to tensor<2x4x8xf32>`
  }];
  let assemblyFormat = [{$operand `strides` $strides `low` $low `high` $high `dilations` $dilations attr-dict
    `:` type($operand) `to` type($result)}];
}

def Par_MaxPoolOp : Par_WindowOp<"max_pool", (ins Par_NumberTensor:$operand), (ins DenseI64ArrayAttr:$window),
    (outs Par_NumberTensor:$result)> {
  let summary = "largest element of every window of the trailing dims; the padding is smaller than all";
  let description = [{
    Its gradient goes to the first largest element of a window, in row-major order.

    Example: `%1 = par.max_pool %0 window [3] strides [2] low [1] high [1] dilations [1]
      : tensor<2x4x8xf32> to tensor<2x4x4xf32>`
  }];
  let assemblyFormat = [{$operand `window` $window `strides` $strides `low` $low `high` $high `dilations` $dilations
    attr-dict `:` type($operand) `to` type($result)}];
}

def Par_MaxPoolGradOp : Par_WindowOp<"max_pool_grad", (ins Par_FloatTensor:$cotangent, Par_FloatTensor:$operand,
    Par_FloatTensor:$largest), (ins DenseI64ArrayAttr:$window), (outs Par_FloatTensor:$result),
    [AllTypesMatch<["operand", "result"]>, AllTypesMatch<["cotangent", "largest"]>]> {
  let summary = "cotangent of max_pool's operand; `largest` is its result";
  let description = [{
    Example: `%1 = par.max_pool_grad %ct, %x, %y window [3] strides [2] low [1] high [1] dilations [1]
      : tensor<2x4x4xf32>, tensor<2x4x8xf32>`
  }];
  let assemblyFormat = [{$cotangent `,` $operand `,` $largest `window` $window `strides` $strides `low` $low
    `high` $high `dilations` $dilations attr-dict `:` type($cotangent) `,` type($operand)}];
}

#endif
