// A value that has the batch but depends on no input, as the plan binds the input, is computed for one microbatch: no
// slice is taken from it. That holds for ops of several results, too.
// RUN: par-opt %s --par-slice-microbatches=microbatches=4 | FileCheck %s
// RUN: par-opt %s --par-check-phases=passes=par-slice-microbatches{microbatches=4}

// CHECK: par.loop 4
// CHECK: %[[N:.*]], %{{.*}}, %{{.*}} = par.layer_norm {{.*}} -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
// CHECK: par.multiply %{{.*}}, %[[N]] : tensor<2x4xf32>
// CHECK-NOT: dynamic_slice
par.variable @table parameter : tensor<3x4xf32>
par.variable @scale parameter : tensor<4xf32>
par.variable @bias parameter : tensor<4xf32>
par.step @eval(%x: tensor<8x4xf32>) -> tensor<f32> {
  %table = par.read @table : tensor<3x4xf32>
  %scale = par.read @scale : tensor<4xf32>
  %bias = par.read @bias : tensor<4xf32>
  %ids = par.constant dense<1> : tensor<8xi64>
  %rows = par.gather %table, %ids dim 0 : tensor<3x4xf32>, tensor<8xi64> to tensor<8x4xf32>
  %n:3 = par.layer_norm %rows, %scale, %bias epsilon 1.0e-3 : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>)
  %y = par.multiply %x, %n#0 : tensor<8x4xf32>
  %l = par.reduce sum %y dims [0, 1] : tensor<8x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
