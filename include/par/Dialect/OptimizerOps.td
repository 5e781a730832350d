#ifndef PAR_DIALECT_OPTIMIZEROPS_TD
#define PAR_DIALECT_OPTIMIZEROPS_TD

include "par/Dialect/Types.td"

// One optimizer update of one parameter, by PyTorch's formulas. `lr` is a scalar that the host sets between steps. With
// `rows` the gradient has a row for each of them, and these rows of the weight and its states, along dim 0, are updated
// as if there were no others, which stay as they are. Negative ones belong to none; no row is named twice.

def Par_SgdOp : Par_TensorOp<"sgd", (ins Par_FloatTensor:$weight, Par_FloatTensor:$gradient, Par_FloatTensor:$lr,
    Optional<Par_IntTensor>:$rows, F64Attr:$weight_decay), (outs Par_FloatTensor:$new_weight),
    [AllTypesMatch<["weight", "new_weight"]>]> {
  let summary = "w - lr (g + weight_decay w)";
  let description = [{
    Example: `%n = par.sgd %w, %g, %lr decay 0.0 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>`, and of six rows
    `%n = par.sgd %w, %g, %lr decay 0.0 : tensor<50x8xf32>, tensor<6x8xf32>, tensor<f32> rows %r : tensor<6xi64>`
  }];
  let assemblyFormat = [{$weight `,` $gradient `,` $lr `decay` $weight_decay attr-dict
    `:` type($weight) `,` type($gradient) `,` type($lr) (`rows` $rows^ `:` type($rows))?}];
  let hasVerifier = 1;
}

def Par_MomentumOp : Par_TensorOp<"momentum", (ins Par_FloatTensor:$weight, Par_FloatTensor:$gradient,
    Par_FloatTensor:$velocity, Par_FloatTensor:$step, Par_FloatTensor:$lr,
    Optional<Par_IntTensor>:$rows, F64Attr:$momentum, F64Attr:$weight_decay,
    DefaultValuedAttr<BoolAttr, "false">:$nesterov), (outs Par_FloatTensor:$new_weight, Par_FloatTensor:$new_velocity),
    [AllTypesMatch<["weight", "new_weight"]>, AllTypesMatch<["velocity", "new_velocity"]>,
     AllShapesMatch<["weight", "velocity"]>]> {
  let summary = "sgd with momentum: v = mu v + d; w - lr v (or d + mu v with nesterov), d = g + weight_decay w";
  let description = [{
    `step` is the scalar count of this step, from 1; at the first one v = d (which equals starting from v = 0).

    Example: `%n, %v2 = par.momentum %w, %g, %v, %step, %lr momentum 0.9 decay 0.0
      : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>`
  }];
  let assemblyFormat = [{$weight `,` $gradient `,` $velocity `,` $step `,` $lr `momentum` $momentum `decay`
      $weight_decay
    attr-dict `:` type($weight) `,` type($gradient) `,` type($velocity) `,` type($step) `,` type($lr) (`rows` $rows^
    `:` type($rows))?}];
  let hasVerifier = 1;
}

def Par_AdamwOp : Par_TensorOp<"adamw", (ins Par_FloatTensor:$weight, Par_FloatTensor:$gradient, Par_FloatTensor:$first,
    Par_FloatTensor:$second, Par_FloatTensor:$step, Par_FloatTensor:$lr,
    Optional<Par_IntTensor>:$rows, F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon, F64Attr:$weight_decay),
    (outs Par_FloatTensor:$new_weight, Par_FloatTensor:$new_first, Par_FloatTensor:$new_second),
    [AllTypesMatch<["weight", "new_weight"]>, AllTypesMatch<["first", "second", "new_first", "new_second"]>,
     AllShapesMatch<["weight", "first"]>]> {
  let summary = "AdamW (Loshchilov and Hutter 2019) with PyTorch's order of operations";
  let description = [{
    w *= 1 - lr weight_decay; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
    w -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon), t = `step`, the scalar count of this step from
    1.

    Example: `%n, %m2, %v2 = par.adamw %w, %g, %m, %v, %step, %lr betas 0.9, 0.999 epsilon 1.0e-8 decay 0.01
      : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>`
  }];
  let assemblyFormat = [{$weight `,` $gradient `,` $first `,` $second `,` $step `,` $lr `betas` $beta1 `,` $beta2
    `epsilon` $epsilon `decay` $weight_decay attr-dict
    `:` type($weight) `,` type($gradient) `,` type($first) `,` type($step) `,` type($lr) (`rows` $rows^ `:`
    type($rows))?}];
  let hasVerifier = 1;
}

#endif
