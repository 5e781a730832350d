// Ops that only move a gradient's elements stay in the loop: the gradient is accumulated in its variable's shape, under
// its name.
// RUN: par-opt %s --par-differentiate --par-add-optimizer=kind=sgd --par-slice-microbatches=microbatches=4 | FileCheck %s
// RUN: par-opt %s --par-differentiate --par-add-optimizer=kind=sgd --par-check-phases=passes=par-slice-microbatches{microbatches=4}

// CHECK: par.step @train
// CHECK: par.loop 4
// CHECK-SAME: labels = ["w", ""]
// CHECK: %[[SUM:.*]] = par.reduce {{.*}} to tensor<4xf32>
// CHECK: %[[PART:.*]] = par.reshape %[[SUM]] : tensor<4xf32> to tensor<1x4xf32>
// CHECK: par.yield [sum, sum] %[[PART]], %{{.*}} : tensor<1x4xf32>, tensor<f32>
par.variable @w parameter : tensor<1x4xf32>
par.step @eval(%x: tensor<8x4xf32>) -> tensor<f32> {
  %w = par.read @w : tensor<1x4xf32>
  %v = par.reshape %w : tensor<1x4xf32> to tensor<4xf32>
  %wide = par.broadcast_in_dim %v dims [1] : tensor<4xf32> to tensor<8x4xf32>
  %y = par.multiply %x, %wide : tensor<8x4xf32>
  %l = par.reduce sum %y dims [0, 1] : tensor<8x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
