// A collected value of all microbatches is accumulated: each adds its own slice at its index, in storage for all of
// them. Other values, sums or slices along another dim, are collected after the loop as they are.
// RUN: par-opt %s --par-slice-microbatches=microbatches=4 | FileCheck %s
// RUN: par-opt %s --par-slice-microbatches=microbatches=1 | FileCheck %s --check-prefix=ONE
// RUN: par-opt %s --par-check-phases='passes=par-slice-microbatches{microbatches=4},par-assign-stages,par-form-fragments'
// RUN: par-opt %s --par-check-phases='passes=par-slice-microbatches{microbatches=1},par-assign-stages,par-form-fragments'

// CHECK: par.loop 4
// CHECK: ^bb0(%[[I:.*]]: tensor<i64>, %[[X:.*]]: tensor<2x3xf32>):
// CHECK: %[[ROW:.*]] = par.reshape %{{.*}} : tensor<2x3xf32> to tensor<1x2x3xf32>
// CHECK: %[[AT:.*]] = par.reshape %[[I]] : tensor<i64> to tensor<1xi64>
// CHECK: par.index_add %[[ROW]], %[[AT]] dim 0 size 4 : tensor<1x2x3xf32>, tensor<1xi64> to tensor<4x2x3xf32>
// CHECK: par.index_add %{{.*}} dim 0 size 4 : tensor<1x3x2xf32>, tensor<1xi64> to tensor<4x3x2xf32>
// CHECK: par.yield [sum, sum]
// CHECK: par.reshape %{{.*}} : tensor<4x2x3xf32> to tensor<8x3xf32>
// CHECK: par.transpose %{{.*}} [1, 0, 2] : tensor<4x3x2xf32> to tensor<3x4x2xf32>
// CHECK: par.collect

// ONE: par.loop 1
// ONE-NOT: par.index_add
// ONE: par.yield [sum, sum]
par.stage @s0 <> ranks [0]
par.variable @w parameter : tensor<3x8xf32>
par.step @predict(%x: tensor<8x3xf32>) -> (tensor<f32>, tensor<f32>) {
  %e = par.exp %x : tensor<8x3xf32>
  %c = par.collect %e dims 1 : tensor<8x3xf32>
  %m = par.cumulative sum %c dim 0 : tensor<8x3xf32>
  %s = par.reduce sum %m dims [0, 1] : tensor<8x3xf32> to tensor<f32>
  %t = par.transpose %e [1, 0] : tensor<8x3xf32> to tensor<3x8xf32>
  %d = par.collect %t dims 2 : tensor<3x8xf32>
  %n = par.cumulative sum %d dim 1 : tensor<3x8xf32>
  %q = par.reduce sum %n dims [0, 1] : tensor<3x8xf32> to tensor<f32>
  par.return %s, %q : tensor<f32>, tensor<f32>
}
