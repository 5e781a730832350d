// A table that layers of two stages add to their scores: each stage moves its own part of the gradient, and accumulates
// it in the table's shape. Parts of one stage are added first.
// RUN: par-opt %s --par-distribute-gradients | FileCheck %s
// RUN: par-opt %s --par-distribute-gradients --par-slice-microbatches=microbatches=4 --par-assign-stages | FileCheck %s --check-prefix=LOOP
// RUN: par-opt %s --par-check-phases='passes=par-distribute-gradients,par-slice-microbatches{microbatches=4},par-assign-stages,par-form-fragments'

// CHECK: par.step @train
// CHECK: %[[A:.*]] = par.reduce sum {{.*}} dims [0] {stage = 1 : i64}
// CHECK: %[[B:.*]] = par.reduce sum {{.*}} dims [0] {stage = 0 : i64}
// CHECK: %[[C:.*]] = par.reduce sum {{.*}} dims [0] {stage = 0 : i64}
// CHECK: %[[MOVED:.*]] = par.transpose %[[A]] [1, 2, 0] {stage = 1 : i64}
// CHECK: %[[LAST:.*]] = par.index_add %[[MOVED]], %{{.*}} dim 0 size 4 {stage = 1 : i64}
// CHECK: %[[BOTH:.*]] = par.add %[[B]], %[[C]] {stage = 0 : i64}
// CHECK: %[[MOVED:.*]] = par.transpose %[[BOTH]] [1, 2, 0] {stage = 0 : i64}
// CHECK: %[[FIRST:.*]] = par.index_add %[[MOVED]], %{{.*}} dim 0 size 4 {stage = 0 : i64}
// CHECK: %[[SUM:.*]] = par.add %[[LAST]], %[[FIRST]] : tensor<4x2xf32>
// CHECK: par.gradient %[[SUM]] of @table
// LOOP: par.loop 4
// LOOP-SAME: labels = ["table", "table", ""
// LOOP: par.index_add
// LOOP: par.index_add
// LOOP: par.yield

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @table parameter : tensor<4x2xf32>
par.variable @w parameter : tensor<2x3x3xf32>
par.step @train(%x: tensor<8x2x3x3xf32>) -> tensor<f32> {
  %table = par.read @table : tensor<4x2xf32>
  %ids = par.constant dense<[[0, 1, 2], [1, 0, 1], [3, 1, 0]]> : tensor<3x3xi64>
  %w = par.read @w : tensor<2x3x3xf32>
  %wide = par.broadcast_in_dim %w dims [1, 2, 3] {stage = 0 : i64} : tensor<2x3x3xf32> to tensor<8x2x3x3xf32>
  %y = par.multiply %x, %wide {stage = 0 : i64} : tensor<8x2x3x3xf32>
  %z = par.tanh %y {stage = 1 : i64} : tensor<8x2x3x3xf32>
  %l = par.reduce sum %z dims [0, 1, 2, 3] {stage = 1 : i64} : tensor<8x2x3x3xf32> to tensor<f32>
  %a = par.reduce sum %z dims [0] {stage = 1 : i64} : tensor<8x2x3x3xf32> to tensor<2x3x3xf32>
  %b = par.reduce sum %y dims [0] {stage = 0 : i64} : tensor<8x2x3x3xf32> to tensor<2x3x3xf32>
  %v = par.negate %y {stage = 0 : i64} : tensor<8x2x3x3xf32>
  %c = par.reduce sum %v dims [0] {stage = 0 : i64} : tensor<8x2x3x3xf32> to tensor<2x3x3xf32>
  %0 = par.add %a, %b : tensor<2x3x3xf32>
  %1 = par.add %0, %c : tensor<2x3x3xf32>
  %2 = par.transpose %1 [1, 2, 0] {stage = 0 : i64} : tensor<2x3x3xf32> to tensor<3x3x2xf32>
  %3 = par.index_add %2, %ids dim 0 size 4 {stage = 0 : i64} : tensor<3x3x2xf32>, tensor<3x3xi64> to tensor<4x2xf32>
  %g = par.gradient %3 of @table : tensor<4x2xf32>
  %rate = par.constant dense<0.1> : tensor<f32>
  %n = par.sgd %table, %g, %rate decay 0.0 {stage = 0 : i64} : tensor<4x2xf32>, tensor<4x2xf32>, tensor<f32>
  par.write %n to @table : tensor<4x2xf32>
  par.return %l : tensor<f32>
}
