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

def Par_LionOp : Par_TensorOp<"lion", (ins Par_FloatTensor:$weight, Par_FloatTensor:$gradient,
    Par_FloatTensor:$momentum, Par_FloatTensor:$lr, Optional<Par_IntTensor>:$rows,
    F64Attr:$beta1, F64Attr:$beta2, F64Attr:$weight_decay),
    (outs Par_FloatTensor:$new_weight, Par_FloatTensor:$new_momentum),
    [AllTypesMatch<["weight", "new_weight"]>, AllTypesMatch<["momentum", "new_momentum"]>,
     AllShapesMatch<["weight", "momentum"]>]> {
  let summary = "Lion (Chen et al. 2023): a step by the sign of a moving average";
  let description = [{
    c = beta1 m + (1 - beta1) g; w -= lr (sign(c) + weight_decay w); m = beta2 m + (1 - beta2) g.

    Example: `%n, %m2 = par.lion %w, %g, %m, %lr betas 0.9, 0.99 decay 0.0
      : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>`
  }];
  let assemblyFormat = [{$weight `,` $gradient `,` $momentum `,` $lr `betas` $beta1 `,` $beta2
    `decay` $weight_decay attr-dict `:` type($weight) `,` type($gradient) `,` type($momentum) `,` type($lr)
    (`rows` $rows^ `:` type($rows))?}];
  let hasVerifier = 1;
}

def Par_MuonOp : Par_TensorOp<"muon", (ins Par_FloatTensor:$weight, Par_FloatTensor:$gradient,
    Par_FloatTensor:$buffer, Par_FloatTensor:$lr, Optional<Par_IntTensor>:$rows,
    F64Attr:$momentum, F64Attr:$weight_decay, DefaultValuedAttr<BoolAttr, "true">:$nesterov),
    (outs Par_FloatTensor:$new_weight, Par_FloatTensor:$new_buffer),
    [AllTypesMatch<["weight", "new_weight"]>, AllTypesMatch<["buffer", "new_buffer"]>,
     AllShapesMatch<["weight", "buffer"]>]> {
  let summary = "Muon (Jordan et al. 2024): momentum of a matrix, orthogonalized by five Newton-Schulz steps";
  let description = [{
    b = mu b + (1 - mu) g; u = mu b + (1 - mu) g with nesterov, else b; w *= 1 - lr weight_decay;
    w -= lr sqrt(max(1, rows / columns)) orthogonal(u), where orthogonal(u) divides by the norm and then takes
    x to 3.4445 x - 4.775 (x x^T) x + 2.0315 (x x^T)^2 x five times, of the transpose if it has fewer rows. The weight
    has two dims. It is whole on each rank: every element of the result depends on all of them.

    Example: `%n, %b2 = par.muon %w, %g, %b, %lr momentum 0.95 decay 0.1
      : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>`
  }];
  let assemblyFormat = [{$weight `,` $gradient `,` $buffer `,` $lr `momentum` $momentum `decay` $weight_decay attr-dict
    `:` type($weight) `,` type($gradient) `,` type($buffer) `,` type($lr) (`rows` $rows^ `:` type($rows))?}];
  let hasVerifier = 1;
}

#endif
