#ifndef PAR_DIALECT_NORMOPS_TD
#define PAR_DIALECT_NORMOPS_TD

include "par/Dialect/Types.td"

// Composites along the last dims. Each returns the values that its gradient needs; none reduces over the batch.

def Par_SoftmaxOp : Par_TensorOp<"softmax", (ins Par_FloatTensor:$operand, I64Attr:$dim, UnitAttr:$safe),
    (outs Par_FloatTensor:$result), [SameOperandsAndResultType]> {
  let summary = "e^x / sum e^x along one dim, shifted by the largest element";
  let description = [{
    A row that has no largest finite element is NaN: all of it is -inf (a query that may look at no key), or it holds
    NaN or inf. `safe`: such a row is 0, and so is its gradient, as PyTorch's attention has it.

    Example: `%1 = par.softmax %0 dim 1 safe : tensor<4x8xf32>`
  }];
  let assemblyFormat = "$operand `dim` $dim (`safe` $safe^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Par_SoftmaxGradOp : Par_TensorOp<"softmax_grad", (ins Par_FloatTensor:$cotangent, Par_FloatTensor:$softmax,
    I64Attr:$dim),
    (outs Par_FloatTensor:$result), [SameOperandsAndResultType]> {
  let summary = "y (ct - sum(ct y)) where y is the softmax";
  let description = "Example: `%2 = par.softmax_grad %ct, %y dim 1 : tensor<4x8xf32>`";
  let assemblyFormat = "$cotangent `,` $softmax `dim` $dim attr-dict `:` type($result)";
}

def Par_LayerNormOp : Par_TensorOp<"layer_norm", (ins Par_FloatTensor:$operand, Par_FloatTensor:$scale,
    Par_FloatTensor:$bias, F64Attr:$epsilon),
    (outs Par_FloatTensor:$result, Par_FloatTensor:$mean, Par_FloatTensor:$rstd), [InferTypeOpAdaptor]> {
  let summary = "(x - mean) / sqrt(var + epsilon) * scale + bias over the trailing dims";
  let description = [{
    Scale and bias have one shape, that of the trailing dims that are normalised. Mean and 1 / sqrt(var + epsilon) come
    out with the leading dims, in the operand's element type (f32 for narrower ones).

    Example: `%y, %mean, %rstd = par.layer_norm %x, %w, %b epsilon 1.0e-5
      : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)`
  }];
  let assemblyFormat = "$operand `,` $scale `,` $bias `epsilon` $epsilon attr-dict `:` functional-type(operands, "
                       "results)";
}
def Par_LayerNormGradOp : Par_TensorOp<"layer_norm_grad", (ins Par_FloatTensor:$cotangent, Par_FloatTensor:$operand,
    Par_FloatTensor:$scale, Par_FloatTensor:$mean, Par_FloatTensor:$rstd), (outs Par_FloatTensor:$result),
    [AllTypesMatch<["cotangent", "operand", "result"]>, AllTypesMatch<["mean", "rstd"]>]> {
  let summary = "cotangent of layer_norm's operand; those of scale and bias are plain reductions";
  let description = [{
    With n = (x - mean) rstd and g = ct scale: rstd (g - mean(g) - n mean(g n)).

    Example: `%1 = par.layer_norm_grad %ct, %x, %w, %mean, %rstd
      : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x8xf32>`
  }];
  let assemblyFormat = [{$cotangent `,` $operand `,` $scale `,` $mean `,` $rstd attr-dict
    `:` functional-type(operands, results)}];
}

#endif
