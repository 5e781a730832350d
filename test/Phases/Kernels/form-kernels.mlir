// Every tensor op goes into a kernel, matmuls with their accumulation into library calls, optimizers and losses into
// builtins; the programs give the same results, also in the buffers that Memory assigns.
// RUN: par-opt %S/../Propagate/Inputs/two-stages.mlir --par-slice-microbatches=microbatches=4 --par-assign-stages --par-form-fragments --par-propagate-shardings=batch-axes=dp --par-partition-fragments --par-build-programs=schedule=1f1b --par-check-phases='passes=par-inline-fragments,par-form-kernels' --par-verify-kernels | FileCheck %s
// RUN: par-opt %S/../Propagate/Inputs/two-stages.mlir --par-slice-microbatches=microbatches=4 --par-assign-stages --par-form-fragments --par-propagate-shardings=batch-axes=dp --par-partition-fragments --par-build-programs=schedule=1f1b --par-check-phases='passes=par-inline-fragments,par-form-kernels,par-assign-buffers'
// RUN: par-opt %s --par-form-kernels --par-verify-kernels | FileCheck %s --check-prefix=FOLD

// CHECK-NOT: par.fragment
// CHECK: par.kernel @[[FORWARD:dot.*]](%{{.*}}: tensor<2x4xf32>, %{{.*}}: tensor<4x4xf32>) -> tensor<2x4xf32> attributes {implementation = "library:matmul"}
// CHECK: par.kernel @[[SUM:dot.*]](%{{.*}}, %{{.*}}, %[[ACC:.*]]: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {implementation = "library:matmul", tied = array<i64: 2>}
// CHECK-NEXT: %[[DOT:.*]] = par.dot
// CHECK-NEXT: par.add %[[ACC]], %[[DOT]]
// CHECK-DAG: par.kernel @{{.*}} attributes {implementation = "builtin:sgd", tied = array<i64: 2>}
// CHECK-DAG: par.kernel @{{.*}} attributes {implementation = "builtin:cross_entropy"}
// CHECK-DAG: par.kernel @{{.*}} attributes {implementation = "builtin:cross_entropy_backward"}
// CHECK-LABEL: par.program @s0.program
// CHECK: par.block @train.forward
// CHECK: par.launch @[[FORWARD]]
// CHECK: par.block @train.backward {
// CHECK: %[[OLD:.*]] = par.load @train.backward.sum.w1
// CHECK: %[[NEW:.*]] = par.launch @[[SUM]](%{{.*}}, %{{.*}}, %[[OLD]])
// CHECK: par.store %[[NEW]] to @train.backward.sum.w1

// Transposes and reshapes around a matmul are strides of its call; equal kernels are one.
// FOLD: par.kernel @dot.0(%{{.*}}: tensor<2x3x8xf32>, %{{.*}}: tensor<2x5x8xf32>) -> tensor<2x3x20xf32> attributes {implementation = "library:matmul"}
// FOLD-COUNT-2: par.reshape
// FOLD: par.dot
// FOLD-NOT: par.kernel
// FOLD: par.block @heads
// FOLD-NEXT: par.load @q
// FOLD-NEXT: par.load @k
// FOLD-NEXT: %[[S:.*]] = par.launch @dot.0
// FOLD-NEXT: par.store %[[S]]
// FOLD-NEXT: par.load @k2
// FOLD-NEXT: par.launch @dot.0
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @q temp : tensor<2x3x8xf32>
  par.buffer @k temp : tensor<2x5x8xf32>
  par.buffer @k2 temp : tensor<2x5x8xf32>
  par.buffer @s temp : tensor<2x3x20xf32>
  par.buffer @s2 temp : tensor<2x3x20xf32>
  par.block @heads {
    %q = par.load @q : tensor<2x3x8xf32>
    %k = par.load @k : tensor<2x5x8xf32>
    %0 = par.reshape %q : tensor<2x3x8xf32> to tensor<2x3x4x2xf32>
    %1 = par.reshape %k : tensor<2x5x8xf32> to tensor<2x5x4x2xf32>
    %2 = par.dot %0, %1 contracting [3] x [3] batching [0, 2] x [0, 2] : (tensor<2x3x4x2xf32>, tensor<2x5x4x2xf32>) -> tensor<2x4x3x5xf32>
    %3 = par.transpose %2 [0, 2, 1, 3] : tensor<2x4x3x5xf32> to tensor<2x3x4x5xf32>
    %4 = par.reshape %3 : tensor<2x3x4x5xf32> to tensor<2x3x20xf32>
    par.store %4 to @s : tensor<2x3x20xf32>
    %k2 = par.load @k2 : tensor<2x5x8xf32>
    %5 = par.reshape %k2 : tensor<2x5x8xf32> to tensor<2x5x4x2xf32>
    %6 = par.dot %0, %5 contracting [3] x [3] batching [0, 2] x [0, 2] : (tensor<2x3x4x2xf32>, tensor<2x5x4x2xf32>) -> tensor<2x4x3x5xf32>
    %7 = par.transpose %6 [0, 2, 1, 3] : tensor<2x4x3x5xf32> to tensor<2x3x4x5xf32>
    %8 = par.reshape %7 : tensor<2x3x4x5xf32> to tensor<2x3x20xf32>
    par.store %8 to @s2 : tensor<2x3x20xf32>
  }
}
