// A step's selections by mode are folded before differentiation: no step computes both.
// RUN: par-opt %s --par-differentiate --split-input-file | FileCheck %s

// CHECK-NOT: @par.training
par.variable @par.training counter : tensor<i1> value dense<true> : tensor<i1>
par.variable @w parameter : tensor<4xf32>

// CHECK-LABEL: par.step @eval
// CHECK-NOT: par.training
// CHECK-NOT: par.select
// CHECK-NOT: par.exp
// CHECK: par.tanh
// CHECK-NOT: par.exp
// CHECK-LABEL: par.step @train
// CHECK-NOT: par.training
// CHECK-NOT: par.select
// CHECK-NOT: par.tanh
// CHECK: par.exp
// CHECK-NOT: par.tanh
par.step @eval() -> tensor<f32> {
  %w = par.read @w : tensor<4xf32>
  %mode = par.read @par.training : tensor<i1>
  %0 = par.broadcast_in_dim %mode dims [] : tensor<i1> to tensor<4xi1>
  %trained = par.exp %w : tensor<4xf32>
  %otherwise = par.tanh %w : tensor<4xf32>
  %1 = par.select %0, %trained, %otherwise : tensor<4xi1>, tensor<4xf32>
  %l = par.reduce sum %1 dims [0] : tensor<4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}

// -----

// Ops that compute with the mode stay.
par.variable @par.training counter : tensor<i1> value dense<true> : tensor<i1>
par.variable @w parameter : tensor<f32>

// CHECK-LABEL: par.step @eval
// CHECK: %[[FALSE:.*]] = par.constant dense<false> : tensor<i1>
// CHECK: par.convert %[[FALSE]]
// CHECK-LABEL: par.step @train
// CHECK: %[[TRUE:.*]] = par.constant dense<true> : tensor<i1>
// CHECK: par.convert %[[TRUE]]
par.step @eval() -> tensor<f32> {
  %w = par.read @w : tensor<f32>
  %mode = par.read @par.training : tensor<i1>
  %0 = par.convert %mode : tensor<i1> to tensor<f32>
  %l = par.multiply %0, %w : tensor<f32>
  par.return %l : tensor<f32>
}
