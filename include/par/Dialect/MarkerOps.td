#ifndef PAR_DIALECT_MARKEROPS_TD
#define PAR_DIALECT_MARKEROPS_TD

include "par/Dialect/Types.td"

// Identities that carry annotations to later phases. An annotation that must survive rewrites is an op.

def Par_ConstrainOp : Par_TensorOp<"constrain", (ins Par_Tensor:$operand, Par_ShardingAttr:$sharding,
                                                    DefaultValuedAttr<I64Attr, "1">:$priority),
    (outs Par_Tensor:$result), [SameOperandsAndResultType]> {
  let summary = "the user's sharding of a value; its gradient is the same constraint";
  let description = [{
    Constraints of a lower priority number are propagated first. Over the unreduced axes a value that is a partial sum
    may stay one up to its uses.

    Example: `%1 = par.constrain %0 <[{"dp"}, {?} ]> priority 2 : tensor<4x8xf32>`
  }];
  let assemblyFormat = "$operand $sharding (`priority` $priority^)? attr-dict `:` type($result)";
}

def Par_CotangentOp : Par_TensorOp<"cotangent", (ins Par_FloatTensor:$loss, Par_FloatTensor:$seed),
    (outs Par_FloatTensor:$result), [SameOperandsAndResultType]> {
  let summary = "the loss's cotangent: the seed's value; everything that depends on this is backward";
  let description = [{
    The seed is 1 or the loss scale.

    Example: `%ct = par.cotangent %loss, %one : tensor<f32>`
  }];
  let assemblyFormat = "$loss `,` $seed attr-dict `:` type($result)";
}

def Par_CollectOp : Par_TensorOp<"collect", (ins Par_Tensor:$operand, I64Attr:$dims), (outs Par_Tensor:$result),
    [SameOperandsAndResultType]> {
  let summary = "a value of the whole batch, complete after all microbatches on all ranks that share it";
  let description = [{
    The first `dims` dims are unsharded. In a loop over microbatches the result concatenates the microbatches'
    operands.

    Example: `%1 = par.collect %0 dims 1 : tensor<8x64xf32>`
  }];
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Par_GradientOp : Par_TensorOp<"gradient", (ins Par_FloatTensor:$operand, Optional<Par_IntTensor>:$rows,
    FlatSymbolRefAttr:$variable), (outs Par_FloatTensor:$result), [AllTypesMatch<["operand", "result"]>]> {
  let summary = "the whole gradient of a variable; everything that depends on this is update";
  let description = [{
    With `rows` it is the gradient of these rows of the variable (dim 0). Other rows have a zero gradient, a negative
    row number is ignored, and no row occurs twice.

    Example: `%g = par.gradient %0 of @w1 : tensor<4x8xf32>`,
    `%h = par.gradient %1 rows %r of @wte : tensor<32x8xf32>, tensor<32xi64>`
  }];
  let assemblyFormat = "$operand (`rows` $rows^)? `of` $variable attr-dict `:` type($result) (`,` type($rows)^)?";
  let hasVerifier = 1;
}

#endif
