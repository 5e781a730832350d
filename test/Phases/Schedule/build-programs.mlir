// Two stages, four microbatches: sums start in .first and are reduced in .last, a crossing value is one send and one
// receive, residuals have a slot for each microbatch in flight, and new values go where the old ones stand.
// RUN: par-opt %S/../Propagate/Inputs/two-stages.mlir --par-slice-microbatches=microbatches=4 --par-assign-stages --par-form-fragments --par-propagate-shardings=batch-axes=dp --par-partition-fragments --par-build-programs --par-verify-schedule | FileCheck %s

// CHECK-NOT: par.step
// CHECK-LABEL: par.program @s0.program on @s0 ranks [0, 1, 2, 3]
// CHECK: par.buffer @w1 state of "w1" : tensor<4x4xf32> as !par.dist<tensor<4x8xf32>, @s0, {{.*}}>
// CHECK: par.buffer @lr hyperparameter of "lr"
// CHECK: par.buffer @train.input.x input of "x" sliced by microbatch depth 2 : tensor<2x4xf32>
// CHECK: par.buffer @train.forward.1 temp by microbatch depth 2
// CHECK: par.buffer @train.backward.sum.w1 temp of "w1" : tensor<4x4xf32> as !par.dist<tensor<4x8xf32>, @s0, {{.*}}{"tp"}]>
// CHECK: par.block @train.s0.to.s1.send
// CHECK: par.send %{{.*}} to [4, 5, 6, 7] tag 0
// CHECK: par.block @train.backward.first
// CHECK-NOT: par.add
// CHECK: par.block @train.backward {
// CHECK: %[[SUM:.*]] = par.load @train.backward.sum.w1
// CHECK: par.add %[[SUM]]
// CHECK: par.block @train.backward.last
// CHECK: par.add
// CHECK: %[[RED:.*]] = par.exec @train.s0.reduce
// CHECK: par.store %[[RED]] to @train.backward.sum.w1
// CHECK: par.world_all_reduce sum %{{.*}} groups [array<i64: 0, 4>, array<i64: 1, 5>, array<i64: 2, 6>, array<i64: 3, 7>]
// CHECK: par.store %{{.*}} to @w1
// CHECK: par.entry @train runs [@train.forward, @train.s0.to.s1.send, @train.forward, {{.*}}@train.backward.first, @train.forward,
// CHECK-LABEL: par.program @s1.program on @s1 ranks [4, 5, 6, 7]
// CHECK: par.buffer @train.input.y input of "y" sliced by microbatch depth 4 : tensor<2xi64>
// CHECK: par.buffer @train.forward.0 temp by microbatch : tensor<2x2xf32>
// CHECK: par.recv from [0, 1, 2, 3] tag 0
// CHECK: par.exec @train.s1.before
// CHECK: par.fetch %{{.*}} as "loss"
// CHECK: par.entry @train runs [@train.before.first,
