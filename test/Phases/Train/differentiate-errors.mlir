// Differentiate's errors and warnings.
// RUN: par-opt %s --par-differentiate --split-input-file --verify-diagnostics

par.variable @w parameter : tensor<4xf32>
par.step @eval() -> tensor<f32> {
  %w = par.read @w : tensor<4xf32>
  // expected-error @below {{op cumulative cannot be differentiated yet, and the loss depends on a parameter through it}}
  %0 = par.cumulative max %w dim 0 : tensor<4xf32>
  %1 = par.reduce sum %0 dims [0] : tensor<4xf32> to tensor<f32>
  par.return %1 : tensor<f32>
}

// -----

par.variable @w parameter : tensor<4xf32>
// expected-error @below {{returns 'tensor<4xf32>' as its loss, expected a float scalar}}
par.step @eval() -> tensor<4xf32> {
  %w = par.read @w : tensor<4xf32>
  par.return %w : tensor<4xf32>
}

// -----

par.variable @w frozen : tensor<f32>
// expected-error @below {{the loss depends on no parameter that is trained}}
par.step @eval() -> tensor<f32> {
  %w = par.read @w : tensor<f32>
  par.return %w : tensor<f32>
}

// -----

// expected-warning @below {{"w" is not trained: the loss does not depend on it}}
par.variable @w parameter : tensor<f32>
// expected-error @below {{the loss depends on parameters only through steps (rounding, comparing, choosing), whose gradient is 0: nothing can be trained}}
par.step @eval() -> tensor<f32> {
  %w = par.read @w : tensor<f32>
  %c = par.ceil %w : tensor<f32>
  par.return %c : tensor<f32>
}

// -----

// expected-error @below {{returns nothing, expected a loss}}
par.step @eval() {
  par.return
}

// -----

par.variable @w parameter : tensor<f32>
// expected-error @below {{is there already; Train makes @train of @eval}}
par.variable @train parameter : tensor<f32>
par.step @eval() -> tensor<f32> {
  %w = par.read @w : tensor<f32>
  par.return %w : tensor<f32>
}

// -----

par.variable @w parameter : tensor<f32>
// expected-warning @below {{"idle", "more", "others" and 1 more are not trained: the loss does not depend on them}}
par.variable @idle parameter : tensor<f32>
par.variable @more parameter : tensor<f32>
par.variable @others parameter : tensor<f32>
par.variable @last parameter : tensor<f32>
par.step @eval() -> tensor<f32> {
  %w = par.read @w : tensor<f32>
  par.return %w : tensor<f32>
}
