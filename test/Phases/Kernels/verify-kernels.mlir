// The gate after Kernels refuses kernels without a matching call, and tensor ops outside kernels.
// RUN: par-opt %s --par-verify-kernels --split-input-file --verify-diagnostics
// RUN: par-compile %models/mlp/model.onnx --set train={} --stop-after=schedule > %t.mlir
// RUN: not par-opt %t.mlir --par-verify-kernels 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// SCHEDULE: error: {{.*}}is left after Kernels

// expected-error @below {{ties 1 results, it has 0}}
par.kernel @k(%a: tensor<4xf32>) attributes {implementation = "generated", tied = array<i64: 0>} {
  par.return
}

// -----

// expected-error @below {{ties result 0 to argument 1, it has 1}}
par.kernel @k(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated", tied = array<i64: 1>} {
  %0 = par.exp %a : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{ties result 0 of type 'tensor<f32>' to argument 0 of type 'tensor<4xf32>'}}
par.kernel @k(%a: tensor<4xf32>) -> tensor<f32> attributes {implementation = "generated", tied = array<i64: 0>} {
  %0 = par.reduce sum %a dims [0] : tensor<4xf32> to tensor<f32>
  par.return %0 : tensor<f32>
}

// -----

// expected-error @below {{ties argument 0 twice}}
par.kernel @k(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {implementation = "generated", tied = array<i64: 0, 0>} {
  %0 = par.exp %a : tensor<4xf32>
  par.return %0, %0 : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @below {{is to be a library matmul, but no call computes its body}}
par.kernel @k(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "library:matmul"} {
  %0 = par.exp %a : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{has the unknown implementation "magic"}}
par.kernel @k(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "magic"} {
  %0 = par.exp %a : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

// The weight of sgd is updated in place.
// expected-error @below {{is to be the builtin "sgd", which does not compute its body}}
par.kernel @k(%w: tensor<4xf32>, %g: tensor<4xf32>, %lr: tensor<f32>) -> tensor<4xf32> attributes {implementation = "builtin:sgd"} {
  %0 = par.sgd %w, %g, %lr decay 0.0 : tensor<4xf32>, tensor<4xf32>, tensor<f32>
  par.return %0 : tensor<4xf32>
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.block @b {
    // expected-error @below {{is left in block @b after Kernels}}
    %0 = par.constant dense<1.0> : tensor<4xf32>
  }
}

// -----

par.stage @s0 <> ranks [0]
// expected-error @below {{is left after Kernels}}
par.fragment @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  par.return %x : tensor<4xf32>
}

// -----

// expected-error @below {{is to fill up a buffer in place, which its body does not}}
par.kernel @k(%a: tensor<4xf32>) -> tensor<6xf32> attributes {implementation = "fill", tied = array<i64: 0>} {
  %0 = par.pad %a low [1] high [1] value 0.0 : f32 : tensor<4xf32> to tensor<6xf32>
  par.return %0 : tensor<6xf32>
}
