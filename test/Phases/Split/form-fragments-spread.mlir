// Broadcasts of a variable in a loop, and ops that fuse with them, are computed in forward and in backward: neither
// passes values as large as activations, or gathered variables, to the other. Computed values of the variable's size
// are passed.
// RUN: par-opt %s --par-form-fragments --par-verify-split --split-input-file | FileCheck %s
// RUN: par-opt %s --split-input-file --par-check-phases=passes=par-form-fragments

// CHECK: par.fragment @train.s0.forward(%[[W:.*]]: tensor<4xf32>, %[[X:.*]]: tensor<8x4xf32>
// CHECK: %[[E:.*]] = par.exp %[[W]]
// CHECK: %[[B:.*]] = par.broadcast_in_dim %[[E]]
// CHECK: %[[N:.*]] = par.negate %[[B]]
// CHECK: %[[Y:.*]] = par.multiply %[[X]], %[[N]]
// CHECK: par.return %[[E]], %[[S:[^ ]*]] : tensor<4xf32>, tensor<f32>
// CHECK: par.fragment @train.s0.backward(%[[E:[^ ]*]]: tensor<4xf32>, {{.*}}: tensor<8x4xf32>) -> tensor<4xf32>
// CHECK: %[[B:.*]] = par.broadcast_in_dim %[[E]]
// CHECK: par.negate %[[B]]
par.stage @s0 <"dp"=2> ranks [0, 1]
par.variable @w parameter : tensor<4xf32>
par.step @train(%x: tensor<2x8x4xf32>) -> (tensor<f32>, tensor<4xf32>) attributes {inputs = ["x"], outputs = ["loss", "g"]} {
  %w = par.read @w : tensor<4xf32>
  %one = par.constant {stage = 0 : i64} dense<1.0> : tensor<f32>
  %l, %g = par.loop 2 (%x) : (tensor<2x8x4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %xi: tensor<8x4xf32>):
    %e = par.exp %w {stage = 0 : i64} : tensor<4xf32>
    %b = par.broadcast_in_dim %e dims [1] {stage = 0 : i64} : tensor<4xf32> to tensor<8x4xf32>
    %n = par.negate %b {stage = 0 : i64} : tensor<8x4xf32>
    %y = par.multiply %xi, %n {stage = 0 : i64} : tensor<8x4xf32>
    %s = par.reduce sum %y dims [0, 1] {stage = 0 : i64} : tensor<8x4xf32> to tensor<f32>
    %ct = par.cotangent %s, %one {stage = 0 : i64} : tensor<f32>
    %cb = par.broadcast_in_dim %ct dims [] {stage = 0 : i64} : tensor<f32> to tensor<8x4xf32>
    %d = par.multiply %cb, %xi {stage = 0 : i64} : tensor<8x4xf32>
    %q = par.multiply %d, %n {stage = 0 : i64} : tensor<8x4xf32>
    %gi = par.reduce sum %q dims [0] {stage = 0 : i64} : tensor<8x4xf32> to tensor<4xf32>
    par.yield [sum, sum] %s, %gi : tensor<f32>, tensor<4xf32>
  }
  par.return %l, %g : tensor<f32>, tensor<4xf32>
}

// -----

// A later stage's backward comes before this one's: a value that both of its parts use is transferred once.
// CHECK: par.fragment @train.s0.forward(%[[W:.*]]: tensor<4xf32>) -> tensor<8x4xf32>
// CHECK: par.broadcast_in_dim %[[W]]
// CHECK: par.fragment @train.s1.forward
// CHECK: par.fragment @train.s1.backward
// CHECK-NOT: par.broadcast_in_dim %{{.*}} : tensor<4xf32>
// CHECK: par.step @train
// CHECK: %[[B:.*]] = par.run @train.s0.forward
// CHECK: %[[T:.*]] = par.transfer %[[B]]
// CHECK: par.run @train.s1.backward({{.*}}%[[T]]
par.stage @s0 <"dp"=2> ranks [0, 1]
par.stage @s1 <"dp"=2> ranks [2, 3]
par.variable @w parameter : tensor<4xf32>
par.step @train(%x: tensor<2x8x4xf32>) -> (tensor<f32>, tensor<4xf32>) attributes {inputs = ["x"], outputs = ["loss", "g"]} {
  %w = par.read @w : tensor<4xf32>
  %one = par.constant {stage = 1 : i64} dense<1.0> : tensor<f32>
  %l, %g = par.loop 2 (%x) : (tensor<2x8x4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %xi: tensor<8x4xf32>):
    %b = par.broadcast_in_dim %w dims [1] {stage = 0 : i64} : tensor<4xf32> to tensor<8x4xf32>
    %y = par.multiply %xi, %b {stage = 1 : i64} : tensor<8x4xf32>
    %s = par.reduce sum %y dims [0, 1] {stage = 1 : i64} : tensor<8x4xf32> to tensor<f32>
    %ct = par.cotangent %s, %one {stage = 1 : i64} : tensor<f32>
    %cb = par.broadcast_in_dim %ct dims [] {stage = 1 : i64} : tensor<f32> to tensor<8x4xf32>
    %q = par.multiply %cb, %b {stage = 1 : i64} : tensor<8x4xf32>
    %gi = par.reduce sum %q dims [0] {stage = 1 : i64} : tensor<8x4xf32> to tensor<4xf32>
    par.yield [sum, sum] %s, %gi : tensor<f32>, tensor<4xf32>
  }
  par.return %l, %g : tensor<f32>, tensor<4xf32>
}
