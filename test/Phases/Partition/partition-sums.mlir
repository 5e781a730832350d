// Summands of one accumulator are one sum: a summand that is no part along tp counts on tp's first ranks, and the
// accumulator is reduced once. Matmuls whose parts are added are reduced after the addition.
// RUN: par-opt %S/../Propagate/Inputs/tied.mlir --par-differentiate --par-add-optimizer --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments --par-propagate-shardings=batch-axes=dp --par-partition-fragments --par-verify-partition | FileCheck %s
// RUN: par-opt %S/../Propagate/Inputs/tied.mlir --par-differentiate --par-add-optimizer --par-check-phases='passes=par-slice-microbatches{microbatches=2},par-assign-stages,par-form-fragments,par-propagate-shardings{batch-axes=dp},par-partition-fragments,par-build-programs,par-inline-fragments,par-accumulate-in-place,par-form-kernels'
// RUN: par-opt %s --par-propagate-shardings --par-partition-fragments --par-verify-partition | FileCheck %s --check-prefix=ADDED

// CHECK-LABEL: par.fragment @train.s0.backward
// CHECK: %[[PRODUCT:.*]] = par.dot %{{.*}} contracting [0, 1] x [0, 1]
// CHECK: %[[SCATTERED:.*]] = par.index_add
// CHECK-NEXT: %[[AT:.*]] = par.axis_index over ["tp"]
// CHECK: %[[FIRST:.*]] = par.compare eq
// CHECK: %[[ONCE:.*]] = par.select %[[FIRST]], %[[SCATTERED]]
// CHECK: %[[SUM:.*]] = par.add %[[PRODUCT]], %[[ONCE]]
// CHECK-NEXT: par.return %[[SUM]]
// CHECK: par.fragment @train.s0.reduce0
// CHECK-NEXT: par.all_reduce sum %{{.*}} over ["dp", "tp"] : (tensor<10x6xf32>)
// CHECK-LABEL: par.step @train
// CHECK: par.loop 2{{.*}}labels = ["table", ""]

// ADDED-LABEL: par.fragment @f
// ADDED: par.dot
// ADDED-NEXT: par.dot
// ADDED-NEXT: par.transpose
// ADDED-NEXT: %[[SUM:.*]] = par.add
// ADDED-NEXT: %[[WHOLE:.*]] = par.all_reduce sum %[[SUM]] over ["tp"]
// ADDED-NEXT: par.tanh %[[WHOLE]]
// A value that is read twice is reduced where it is made.
// ADDED-LABEL: par.fragment @g
// ADDED: par.dot
// ADDED-NEXT: par.all_reduce
// ADDED: par.dot
// ADDED-NEXT: par.all_reduce
// ADDED-NEXT: par.add
// ADDED-NEXT: par.multiply
par.stage @s0 <"tp"=2> ranks [0, 1]
par.variable @v parameter : tensor<8x4xf32> sharding <[{"tp"}, {}]>
par.variable @w parameter : tensor<8x4xf32> sharding <[{"tp"}, {}]>
par.fragment @f(%x: tensor<4x8xf32>, %v: tensor<8x4xf32>, %w: tensor<8x4xf32>) -> tensor<4x4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  %0 = par.dot %x, %v contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = par.dot %w, %x contracting [0] x [1] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  %2 = par.transpose %1 [1, 0] : tensor<4x4xf32> to tensor<4x4xf32>
  %3 = par.add %0, %2 : tensor<4x4xf32>
  %4 = par.tanh %3 : tensor<4x4xf32>
  par.return %4 : tensor<4x4xf32>
}
par.fragment @g(%x: tensor<4x8xf32>, %v: tensor<8x4xf32>, %w: tensor<8x4xf32>) -> tensor<4x4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  %0 = par.dot %x, %v contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = par.dot %x, %w contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %2 = par.add %0, %1 : tensor<4x4xf32>
  %3 = par.multiply %2, %1 : tensor<4x4xf32>
  par.return %3 : tensor<4x4xf32>
}
par.step @predict(%x: !par.dist<tensor<4x8xf32>, @s0, ?>) -> !par.dist<tensor<4x4xf32>, @s0, ?> {
  %v = par.read @v : !par.dist<tensor<8x4xf32>, @s0, ?>
  %w = par.read @w : !par.dist<tensor<8x4xf32>, @s0, ?>
  %0 = par.run @f(%x, %v, %w) : (!par.dist<tensor<4x8xf32>, @s0, ?>, !par.dist<tensor<8x4xf32>, @s0, ?>, !par.dist<tensor<8x4xf32>, @s0, ?>) -> !par.dist<tensor<4x4xf32>, @s0, ?>
  %1 = par.run @g(%x, %v, %w) : (!par.dist<tensor<4x8xf32>, @s0, ?>, !par.dist<tensor<8x4xf32>, @s0, ?>, !par.dist<tensor<8x4xf32>, @s0, ?>) -> !par.dist<tensor<4x4xf32>, @s0, ?>
  par.return %1 : !par.dist<tensor<4x4xf32>, @s0, ?>
}
