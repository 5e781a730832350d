// A constant is made in every fragment that uses it; no fragment hands it on to a later one.
// RUN: par-opt %s --par-form-fragments --par-verify-split | FileCheck %s

// CHECK: par.fragment @train.s0.update(%[[G:.*]]: tensor<4xf32>) -> tensor<f32>
// CHECK: par.constant dense<2.000000e+00> : tensor<4xf32>
// CHECK: par.fragment @train.s0.update1(%{{.*}}: tensor<f32>, %{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK-DAG: par.constant dense<1.000000e+00> : tensor<f32>
// CHECK-DAG: par.constant dense<2.000000e+00> : tensor<4xf32>
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @w parameter : tensor<4xf32>
par.variable @v parameter : tensor<4xf32>
par.step @train(%x: tensor<4xf32>) -> tensor<4xf32> attributes {inputs = ["x"], outputs = ["x"]} {
  %w = par.read @w : tensor<4xf32>
  %v = par.read @v : tensor<4xf32>
  %one = par.constant {stage = 0 : i64} dense<1.0> : tensor<f32>
  %two = par.constant {stage = 0 : i64} dense<2.0> : tensor<4xf32>
  %w2 = par.multiply %w, %two {stage = 0 : i64} : tensor<4xf32>
  %a = par.reduce sum %w2 dims [0] {stage = 0 : i64} : tensor<4xf32> to tensor<f32>
  %b = par.reduce sum %v dims [0] {stage = 1 : i64} : tensor<4xf32> to tensor<f32>
  %n:2 = par.stage_all_reduce sum %a, %b : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %c = par.maximum %n#0, %one {stage = 0 : i64} : tensor<f32>
  %cb = par.broadcast_in_dim %c dims [] {stage = 0 : i64} : tensor<f32> to tensor<4xf32>
  %u = par.multiply %cb, %two {stage = 0 : i64} : tensor<4xf32>
  %u2 = par.multiply %u, %w {stage = 0 : i64} : tensor<4xf32>
  par.write %u2 to @w : tensor<4xf32>
  par.return %u2 : tensor<4xf32>
}
