// A table that is looked up once for the whole batch (biases by relative position) has a gradient that is the sum over the
// batch, moved and then scattered: each microbatch scatters its own part, and the loop accumulates in the table's shape,
// under its name.
// RUN: par-opt %s --par-differentiate --par-add-optimizer=kind=sgd --par-slice-microbatches=microbatches=4 | FileCheck %s
// RUN: par-opt %s --par-differentiate --par-add-optimizer=kind=sgd --par-check-phases='passes=par-slice-microbatches{microbatches=4},par-assign-stages,par-form-fragments'
// RUN: par-opt %s --par-differentiate --par-add-optimizer=kind=sgd --par-check-phases='passes=par-slice-microbatches{microbatches=1},par-assign-stages,par-form-fragments'

// CHECK: par.step @train
// CHECK: par.loop 4
// CHECK-SAME: labels = ["table", ""]
// CHECK: %[[SUM:.*]] = par.reduce sum {{.*}} : tensor<2x2x3x3xf32> to tensor<2x3x3xf32>
// CHECK: %[[MOVED:.*]] = par.transpose %[[SUM]] [1, 2, 0]
// CHECK: %[[PART:.*]] = par.index_add %[[MOVED]], %{{.*}} dim 0 size 4
// CHECK: par.yield [sum, sum] %[[PART]], %{{.*}} : tensor<4x2xf32>, tensor<f32>
// CHECK: par.gradient %{{.*}} of @table
// CHECK-NOT: par.index_add
par.stage @s0 <> ranks [0]
par.variable @table parameter : tensor<4x2xf32>
par.step @eval(%x: tensor<8x2x3x3xf32>) -> tensor<f32> {
  %table = par.read @table : tensor<4x2xf32>
  %ids = par.constant dense<[[0, 1, 2], [1, 0, 1], [3, 1, 0]]> : tensor<3x3xi64>
  %rows = par.gather %table, %ids dim 0 : tensor<4x2xf32>, tensor<3x3xi64> to tensor<3x3x2xf32>
  %bias = par.transpose %rows [2, 0, 1] : tensor<3x3x2xf32> to tensor<2x3x3xf32>
  %wide = par.broadcast_in_dim %bias dims [1, 2, 3] : tensor<2x3x3xf32> to tensor<8x2x3x3xf32>
  %y = par.multiply %x, %wide : tensor<8x2x3x3xf32>
  %l = par.reduce sum %y dims [0, 1, 2, 3] : tensor<8x2x3x3xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
