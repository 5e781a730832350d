// Composites are taken apart into simpler ops on the same stage; the classes of a cross-entropy are only reduced over
// and picked from.
// RUN: par-opt %s --par-decompose-ops | FileCheck %s

// CHECK-LABEL: par.step @softmax
// CHECK: [[M:%.*]] = par.reduce{{ +}}max %arg0 dims [1] {stage = 3 : i64}
// CHECK: [[E:%.*]] = par.exp
// CHECK: [[S:%.*]] = par.reduce{{ +}}sum [[E]] dims [1] {stage = 3 : i64}
// CHECK: par.divide [[E]], %{{.*}} {stage = 3 : i64}
par.step @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = par.softmax %x dim 1 {stage = 3 : i64} : tensor<4x8xf32>
  par.return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: par.step @loss
// CHECK-NOT: par.cross_entropy
// CHECK: [[M:%.*]] = par.reduce{{ +}}max %arg0 dims [2]
// CHECK: par.exp
// CHECK: par.reduce{{ +}}sum %{{.*}} dims [2]
// CHECK: par.log
// CHECK: par.take %arg0, %{{.*}} dim 2 : tensor<4x3x8xf32>, tensor<4x3x1xi64>
// CHECK: par.select
par.step @loss(%z: tensor<4x3x8xf32>, %y: tensor<4x3xi64>) -> tensor<4x3xf32> {
  %t, %lse = par.cross_entropy %z, %y ignore -100 : (tensor<4x3x8xf32>, tensor<4x3xi64>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  par.return %t : tensor<4x3xf32>
}

// CHECK-LABEL: par.step @others
// CHECK-NOT: par.{{layer_norm|gelu|sgd|momentum|adamw|softmax}}
par.step @others(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %s: tensor<f32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %n, %mean, %rstd = par.layer_norm %x, %w, %w epsilon 1.0e-5 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  %g = par.gelu %n {tanh = true} : tensor<4x8xf32>
  %h = par.gelu_grad %g, %n : tensor<4x8xf32>
  %d = par.layer_norm_grad %h, %x, %w, %mean, %rstd : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  %u = par.sgd %w, %w, %s decay 0.1 : tensor<8xf32>, tensor<8xf32>, tensor<f32>
  %v, %v2 = par.momentum %u, %w, %w, %s, %s momentum 0.9 decay 0.0 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>
  %a, %a1, %a2 = par.adamw %v, %w, %v2, %w, %s, %s betas 0.9, 0.999 epsilon 1.0e-8 decay 0.01 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>
  par.return %d, %a : tensor<4x8xf32>, tensor<8xf32>
}
