// Every tensor op survives printing and parsing.
// RUN: par-opt %s | par-opt | FileCheck %s

// CHECK-LABEL: par.step @elementwise
par.step @elementwise(%x: tensor<4xf32>, %i: tensor<4xi64>) -> tensor<4xf32> {
  // CHECK: par.negate %arg0 : tensor<4xf32>
  %0 = par.negate %x : tensor<4xf32>
  // CHECK: par.gelu %{{.*}} {tanh = true} : tensor<4xf32>
  %1 = par.gelu %0 {tanh = true} : tensor<4xf32>
  // CHECK: par.gelu_grad %{{.*}}, %{{.*}} : tensor<4xf32>
  %2 = par.gelu_grad %1, %x : tensor<4xf32>
  // CHECK: par.add %{{.*}}, %{{.*}} {stage = 1 : i64} : tensor<4xf32>
  %3 = par.add %2, %x {stage = 1 : i64} : tensor<4xf32>
  // CHECK: par.compare lt %{{.*}}, %{{.*}} : tensor<4xf32>
  %4 = par.compare lt %3, %x : tensor<4xf32>
  // CHECK: par.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xi1>, tensor<4xf32>
  %5 = par.select %4, %3, %x : tensor<4xi1>, tensor<4xf32>
  // CHECK: par.convert %{{.*}} : tensor<4xi64> to tensor<4xf32>
  %6 = par.convert %i : tensor<4xi64> to tensor<4xf32>
  // CHECK: par.bit_cast %{{.*}} : tensor<4xf32> to tensor<4xi32>
  %bits = par.bit_cast %6 : tensor<4xf32> to tensor<4xi32>
  // CHECK: par.is_finite %{{.*}} : tensor<4xf32>
  %7 = par.is_finite %6 : tensor<4xf32>
  // CHECK: par.not %{{.*}} : tensor<4xi1>
  %8 = par.not %7 : tensor<4xi1>
  %9 = par.select %8, %5, %6 : tensor<4xi1>, tensor<4xf32>
  par.return %9 : tensor<4xf32>
}

// CHECK-LABEL: par.step @shapes
par.step @shapes(%x: tensor<4x8xf32>, %i: tensor<i64>) -> tensor<4x8xf32> {
  // CHECK: par.constant dense<1.000000e+00> : tensor<8xf32>
  %0 = par.constant dense<1.0> : tensor<8xf32>
  // CHECK: par.iota dim 1 : tensor<4x8xi64>
  %1 = par.iota dim 1 : tensor<4x8xi64>
  // CHECK: par.broadcast_in_dim %{{.*}} dims [1] : tensor<8xf32> to tensor<4x8xf32>
  %2 = par.broadcast_in_dim %0 dims [1] : tensor<8xf32> to tensor<4x8xf32>
  // CHECK: par.reshape %{{.*}} : tensor<4x8xf32> to tensor<4x2x4xf32>
  %3 = par.reshape %2 : tensor<4x8xf32> to tensor<4x2x4xf32>
  // CHECK: par.transpose %{{.*}} [1, 0] : tensor<4x8xf32> to tensor<8x4xf32>
  %4 = par.transpose %x [1, 0] : tensor<4x8xf32> to tensor<8x4xf32>
  // CHECK: par.slice %{{.*}} [0, 2] to [4, 8] by [1, 2] : tensor<4x8xf32> to tensor<4x3xf32>
  %5 = par.slice %x [0, 2] to [4, 8] by [1, 2] : tensor<4x8xf32> to tensor<4x3xf32>
  // CHECK: par.dynamic_slice %{{.*}} at %{{.*}} dim 0 size 2 : tensor<4x8xf32>, tensor<i64> to tensor<2x8xf32>
  %6 = par.dynamic_slice %x at %i dim 0 size 2 : tensor<4x8xf32>, tensor<i64> to tensor<2x8xf32>
  // CHECK: par.update_slice %{{.*}}, %{{.*}} at %{{.*}} dim 0 : tensor<4x8xf32>, tensor<2x8xf32>, tensor<i64>
  %7 = par.update_slice %x, %6 at %i dim 0 : tensor<4x8xf32>, tensor<2x8xf32>, tensor<i64>
  // CHECK: par.pad %{{.*}} low [0, 1] high [0, 0] value 0.000000e+00 : f32 : tensor<4x8xf32> to tensor<4x9xf32>
  %8 = par.pad %7 low [0, 1] high [0, 0] value 0.0 : f32 : tensor<4x8xf32> to tensor<4x9xf32>
  // CHECK: par.concat %{{.*}}, %{{.*}} dim 1 : (tensor<4x8xf32>, tensor<4x3xf32>) -> tensor<4x11xf32>
  %9 = par.concat %7, %5 dim 1 : (tensor<4x8xf32>, tensor<4x3xf32>) -> tensor<4x11xf32>
  par.return %7 : tensor<4x8xf32>
}

// CHECK-LABEL: par.step @reductions
par.step @reductions(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  // CHECK: par.reduce{{ +}}sum %{{.*}} dims [1] : tensor<4x8xf32> to tensor<4xf32>
  %0 = par.reduce sum %x dims [1] : tensor<4x8xf32> to tensor<4xf32>
  // CHECK: par.arg_reduce{{ +}}max %{{.*}} dim 1 : tensor<4x8xf32> to tensor<4xi64>
  %1 = par.arg_reduce max %x dim 1 : tensor<4x8xf32> to tensor<4xi64>
  // CHECK: par.cumulative{{ +}}sum %{{.*}} dim 1 {exclusive = true, reverse = true} : tensor<4x8xf32>
  %2 = par.cumulative sum %x dim 1 {exclusive = true, reverse = true} : tensor<4x8xf32>
  // CHECK: par.sorted_position %{{.*}} dim 1 {descending = true} : tensor<4x8xf32> to tensor<4x8xi64>
  %p = par.sorted_position %2 dim 1 {descending = true} : tensor<4x8xf32> to tensor<4x8xi64>
  // CHECK: par.scatter_reduce max %{{.*}}, %{{.*}} dim 1 size 8 : tensor<4x8xf32>, tensor<4x8xi64> to tensor<4x8xf32>
  %q = par.scatter_reduce max %2, %p dim 1 size 8 : tensor<4x8xf32>, tensor<4x8xi64> to tensor<4x8xf32>
  // CHECK: par.reverse %{{.*}} dims [1] : tensor<4x8xf32>
  %r = par.reverse %q dims [1] : tensor<4x8xf32>
  // CHECK: par.random_bits %{{.*}}, %{{.*}} : tensor<4x8xi64>
  %s = par.random_bits %p, %p : tensor<4x8xi64>
  // CHECK: par.shift_right %{{.*}}, %{{.*}} : tensor<4x8xi64>
  %t = par.shift_right %s, %p : tensor<4x8xi64>
  // CHECK: par.dot %{{.*}}, %{{.*}} contracting [1] x [1] batching [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4xf32>
  %3 = par.dot %x, %2 contracting [1] x [1] batching [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4xf32>
  par.return %3 : tensor<4xf32>
}

// CHECK-LABEL: par.step @indexing
par.step @indexing(%t: tensor<9x8xf32>, %i: tensor<4xi64>, %j: tensor<9x1xi64>) -> tensor<9x8xf32> {
  // CHECK: par.gather %{{.*}}, %{{.*}} dim 0 : tensor<9x8xf32>, tensor<4xi64> to tensor<4x8xf32>
  %0 = par.gather %t, %i dim 0 : tensor<9x8xf32>, tensor<4xi64> to tensor<4x8xf32>
  // CHECK: par.index_add %{{.*}}, %{{.*}} dim 0 size 9 : tensor<4x8xf32>, tensor<4xi64> to tensor<9x8xf32>
  %1 = par.index_add %0, %i dim 0 size 9 : tensor<4x8xf32>, tensor<4xi64> to tensor<9x8xf32>
  // CHECK: par.take %{{.*}}, %{{.*}} dim 1 : tensor<9x8xf32>, tensor<9x1xi64> to tensor<9x1xf32>
  %2 = par.take %1, %j dim 1 : tensor<9x8xf32>, tensor<9x1xi64> to tensor<9x1xf32>
  // CHECK: par.scatter_add %{{.*}}, %{{.*}} dim 1 size 8 : tensor<9x1xf32>, tensor<9x1xi64> to tensor<9x8xf32>
  %3 = par.scatter_add %2, %j dim 1 size 8 : tensor<9x1xf32>, tensor<9x1xi64> to tensor<9x8xf32>
  par.return %3 : tensor<9x8xf32>
}

// CHECK-LABEL: par.step @composites
par.step @composites(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %y: tensor<4xi64>) -> tensor<4x8xf32> {
  // CHECK: par.softmax %{{.*}} dim 1 : tensor<4x8xf32>
  %0 = par.softmax %x dim 1 : tensor<4x8xf32>
  // CHECK: par.softmax %{{.*}} dim 0 safe {stage = 2 : i64} : tensor<4x8xf32>
  %safe = par.softmax %x dim 0 safe {stage = 2 : i64} : tensor<4x8xf32>
  // CHECK: par.softmax_grad %{{.*}}, %{{.*}} dim 1 : tensor<4x8xf32>
  %1 = par.softmax_grad %x, %0 dim 1 : tensor<4x8xf32>
  // CHECK: par.layer_norm %{{.*}}, %{{.*}}, %{{.*}} epsilon 1.000000e-05 : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  %2, %mean, %rstd = par.layer_norm %1, %w, %w epsilon 1.0e-5
      : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: par.layer_norm_grad
  %3 = par.layer_norm_grad %2, %x, %w, %mean, %rstd
      : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  // CHECK: par.cross_entropy %{{.*}}, %{{.*}} ignore -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  %t, %lse = par.cross_entropy %3, %y ignore -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: par.cross_entropy_grad
  %4 = par.cross_entropy_grad %t, %3, %y, %lse ignore -100
      : (tensor<4xf32>, tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<4x8xf32>
  par.return %4 : tensor<4x8xf32>
}

// CHECK-LABEL: par.step @attention
par.step @attention(%q: tensor<2x4x8x16xbf16>, %k: tensor<2x2x6x16xbf16>, %m: tensor<1x1x8x6xf32>) -> tensor<2x4x8x16xbf16> {
  // CHECK: par.attention %{{.*}}, %{{.*}}, %{{.*}} scale 2.500000e-01 {causal = true} : (tensor<2x4x8x16xbf16>, tensor<2x2x6x16xbf16>, tensor<2x2x6x16xbf16>) -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>)
  %0, %lse = par.attention %q, %k, %k scale 0.25 {causal = true}
      : (tensor<2x4x8x16xbf16>, tensor<2x2x6x16xbf16>, tensor<2x2x6x16xbf16>) -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>)
  // CHECK: par.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} scale 2.500000e-01 : (
  %1, %2, %3 = par.attention_grad %0, %q, %k, %k, %0, %lse mask %m scale 0.25
      : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x2x6x16xbf16>, tensor<2x2x6x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>, tensor<1x1x8x6xf32>)
      -> (tensor<2x4x8x16xbf16>, tensor<2x2x6x16xbf16>, tensor<2x2x6x16xbf16>)
  par.return %1 : tensor<2x4x8x16xbf16>
}

par.variable @w parameter : tensor<8xf32>
// CHECK-LABEL: par.step @updates
par.step @updates(%w: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>) -> tensor<8xf32> {
  // CHECK: par.constrain %{{.*}} <[{?}], unreduced={"tp"}> priority 2 : tensor<8xf32>
  // CHECK: par.constrain %{{.*}} <[{"dp", ?}]> : tensor<8xf32>
  %p = par.constrain %g <[{?}], unreduced={"tp"}> priority 2 : tensor<8xf32>
  %0 = par.constrain %p <[{"dp", ?}]> priority 1 : tensor<8xf32>
  // CHECK: par.cotangent %{{.*}}, %{{.*}} : tensor<f32>
  %1 = par.cotangent %s, %s : tensor<f32>
  // CHECK: par.gradient %{{.*}} of @w : tensor<8xf32>
  %2 = par.gradient %0 of @w : tensor<8xf32>
  // CHECK: par.collect %{{.*}} dims 1 : tensor<2x4xf32>
  // CHECK: par.gradient %{{.*}} rows %{{.*}} of @w : tensor<2x4xf32>, tensor<2xi64>
  // CHECK: par.sgd %{{.*}} decay 0.000000e+00 : tensor<8x4xf32>, tensor<2x4xf32>, tensor<f32> rows %{{.*}} : tensor<2xi64>
  %rows = par.constant dense<[5, -1]> : tensor<2xi64>
  %table = par.constant dense<1.0> : tensor<8x4xf32>
  %cut = par.constant dense<1.0> : tensor<2x4xf32>
  %collected = par.collect %cut dims 1 : tensor<2x4xf32>
  %ofRows = par.gradient %collected rows %rows of @w : tensor<2x4xf32>, tensor<2xi64>
  %updated = par.sgd %table, %ofRows, %s decay 0.0 : tensor<8x4xf32>, tensor<2x4xf32>, tensor<f32> rows %rows : tensor<2xi64>
  // CHECK: par.sgd %{{.*}}, %{{.*}}, %{{.*}} decay 1.000000e-01 : tensor<8xf32>, tensor<8xf32>, tensor<f32>
  %3 = par.sgd %w, %2, %s decay 0.1 : tensor<8xf32>, tensor<8xf32>, tensor<f32>
  // CHECK: par.momentum %{{.*}} momentum 9.000000e-01 decay 0.000000e+00 {nesterov = true}
  %4, %v = par.momentum %3, %2, %g, %s, %1 momentum 0.9 decay 0.0 {nesterov = true}
      : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>
  // CHECK: par.adamw %{{.*}} betas 9.000000e-01, {{.*}} epsilon 1.000000e-08 decay 1.000000e-02
  %5, %m2, %v2 = par.adamw %4, %2, %v, %v, %s, %1 betas 0.9, 0.999 epsilon 1.0e-8 decay 0.01
      : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>
  // CHECK: par.lion %{{.*}} betas 9.000000e-01, {{.*}} decay 0.000000e+00 : tensor<8xf32>
  %lion, %lm = par.lion %3, %2, %g, %s betas 0.9, 0.99 decay 0.0
    : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>
  // CHECK: par.muon %{{.*}} momentum {{.*}} decay 1.000000e-01 : tensor<8x4xf32>
  %muon, %mb = par.muon %table, %table, %table, %s momentum 0.95 decay 0.1
    : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>
  par.return %5 : tensor<8xf32>
}
