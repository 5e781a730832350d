// Products and activations in the narrow format, sums, variables and the loss in f32.
// RUN: par-opt %s --par-mix-precision=compute=bf16 | FileCheck %s
// RUN: par-opt %s --par-mix-precision=compute=fp16 | FileCheck %s --check-prefix=HALF
// RUN: par-opt %s --par-mix-precision='compute=bf16 keep=w' | FileCheck %s --check-prefix=KEEP
// RUN: not par-opt %s --par-mix-precision=compute=f64 2>&1 | FileCheck %s --check-prefix=FAIL

// Without rounding the step gives the same, also with a backward part.
// RUN: par-opt %s --par-check-phases='passes=par-mix-precision,par-differentiate,par-widen-sums,par-decompose-ops'

// FAIL: error: computes in "f64", expected bf16 or fp16

par.variable @table parameter : tensor<7x4xf32>
par.variable @w parameter : tensor<4x4xf32>
par.variable @b parameter : tensor<4xf32>
par.variable @scale parameter : tensor<4xf32>
par.variable @bias parameter : tensor<4xf32>

// CHECK-LABEL: par.step @eval
// CHECK-SAME: -> (tensor<f32>, tensor<3x4xf32>)
// HALF-LABEL: par.step @eval
// KEEP-LABEL: par.step @eval
par.step @eval(%ids: tensor<3xi64>, %x: tensor<3x4xf32>, %y: tensor<3xi64>) -> (tensor<f32>, tensor<3x4xf32>)
    attributes {inputs = ["ids", "x", "y"], outputs = ["loss", "logits"]} {
  %table = par.read @table : tensor<7x4xf32>
  %w = par.read @w : tensor<4x4xf32>
  %b = par.read @b : tensor<4xf32>
  %scale = par.read @scale : tensor<4xf32>
  %bias = par.read @bias : tensor<4xf32>

  // Rows of the f32 table, then rounded: the gradient's sum over rows is f32.
  // CHECK: %[[ROWS:.*]] = par.gather {{.*}} : tensor<7x4xf32>, tensor<3xi64> to tensor<3x4xf32>
  // CHECK-NEXT: %[[H:.*]] = par.convert %[[ROWS]] {stage = 0 : i64} : tensor<3x4xf32> to tensor<3x4xbf16>
  %h = par.gather %table, %ids dim 0 {stage = 0 : i64} : tensor<7x4xf32>, tensor<3xi64> to tensor<3x4xf32>

  // A matmul reads and gives bf16; a bias is added in bf16.
  // CHECK: par.dot {{.*}} : (tensor<3x4xbf16>, tensor<4x4xbf16>) -> tensor<3x4xbf16>
  // HALF: par.dot {{.*}} : (tensor<3x4xf16>, tensor<4x4xf16>) -> tensor<3x4xf16>
  // KEEP: par.dot {{.*}} : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  // CHECK: %[[SPREAD:.*]] = par.broadcast_in_dim {{.*}} : tensor<4xf32> to tensor<3x4xf32>
  // CHECK-NEXT: par.convert %[[SPREAD]] : tensor<3x4xf32> to tensor<3x4xbf16>
  // CHECK-NEXT: par.add {{.*}} : tensor<3x4xbf16>
  %0 = par.dot %h, %w contracting [1] x [0] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %1 = par.broadcast_in_dim %b dims [1] : tensor<4xf32> to tensor<3x4xf32>
  %2 = par.add %0, %1 : tensor<3x4xf32>

  // 0.5 is a number of the format; 0.1 is not, so that the op is f32 and its result is rounded.
  // CHECK: par.multiply {{.*}} : tensor<3x4xbf16>
  // CHECK: %[[TENTH:.*]] = par.multiply {{.*}} : tensor<3x4xf32>
  // CHECK-NEXT: par.convert %[[TENTH]] : tensor<3x4xf32> to tensor<3x4xbf16>
  %half = par.constant dense<5.0e-1> : tensor<3x4xf32>
  %3 = par.multiply %2, %half : tensor<3x4xf32>
  %tenth = par.constant dense<1.0e-1> : tensor<3x4xf32>
  %4 = par.multiply %3, %tenth : tensor<3x4xf32>

  // Composites compute in f32 inside; their parameters stay f32.
  // CHECK: par.layer_norm {{.*}} : (tensor<3x4xbf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xbf16>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: par.softmax {{.*}} : tensor<3x4xbf16>
  %n:3 = par.layer_norm %4, %scale, %bias epsilon 1.0e-5 : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  %5 = par.softmax %n#0 dim 1 : tensor<3x4xf32>

  // An f32 input keeps the ops that use it in f32, up to the next matmul.
  // CHECK: par.add {{.*}} : tensor<3x4xf32>
  // CHECK: par.convert {{.*}} : tensor<3x4xf32> to tensor<3x4xbf16>
  // CHECK: par.dot {{.*}} -> tensor<3x4xbf16>
  %6 = par.add %5, %x : tensor<3x4xf32>
  %7 = par.dot %6, %w contracting [1] x [0] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>

  // The loss is f32, and so are returned values.
  // CHECK: par.cross_entropy {{.*}} : (tensor<3x4xbf16>, tensor<3xi64>) -> (tensor<3xf32>, tensor<3xf32>)
  // CHECK: par.return {{.*}} : tensor<f32>, tensor<3x4xf32>
  %l, %lse = par.cross_entropy %7, %y ignore -100 : (tensor<3x4xf32>, tensor<3xi64>) -> (tensor<3xf32>, tensor<3xf32>)
  %loss = par.reduce sum %l dims [0] : tensor<3xf32> to tensor<f32>
  par.return %loss, %7 : tensor<f32>, tensor<3x4xf32>
}

// Numbers outside the range of the type, and f64 values, stay as they are.
// CHECK-LABEL: par.step @numbers
// CHECK: par.add {{.*}} : tensor<2x2xf32>
// CHECK: par.reduce {{.*}} : tensor<2x2xf32> to tensor<2xf32>
// CHECK: par.dot {{.*}} -> tensor<2x2xf64>
par.step @numbers(%x: tensor<2x4xf32>, %z: tensor<2x2xf64>) -> (tensor<2xf32>, tensor<2x2xf64>) {
  %w = par.read @w : tensor<4x4xf32>
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = par.slice %0 [0, 0] to [2, 2] by [1, 1] : tensor<2x4xf32> to tensor<2x2xf32>
  %mask = par.constant dense<-3.40282347E+38> : tensor<2x2xf32>
  %2 = par.add %1, %mask : tensor<2x2xf32>
  %3 = par.reduce sum %2 dims [1] : tensor<2x2xf32> to tensor<2xf32>
  %4 = par.dot %z, %z contracting [1] x [0] : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  par.return %3, %4 : tensor<2xf32>, tensor<2x2xf64>
}

// An op that reads bits reads those of the model's own type.
// CHECK-LABEL: par.step @bits
// CHECK: %[[n:.*]] = par.dot {{.*}} -> tensor<3x4xbf16>
// CHECK: %[[f:.*]] = par.convert %[[n]] : tensor<3x4xbf16> to tensor<3x4xf32>
// CHECK: par.bit_cast %[[f]] : tensor<3x4xf32> to tensor<3x4xi32>
par.step @bits(%x: tensor<3x4xf32>) -> tensor<3x4xi32> {
  %w = par.read @w : tensor<4x4xf32>
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %1 = par.bit_cast %0 : tensor<3x4xf32> to tensor<3x4xi32>
  par.return %1 : tensor<3x4xi32>
}
