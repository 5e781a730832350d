// Row-parallel matmuls are all-reduced right after the matmul; gradients once, in fragments after the loop.
// RUN: par-opt %S/../Propagate/Inputs/two-stages.mlir --par-slice-microbatches=microbatches=4 --par-assign-stages --par-form-fragments --par-propagate-shardings=batch-axes=dp --par-partition-fragments --par-verify-partition | FileCheck %s

// CHECK-LABEL: par.fragment @train.s0.forward(%{{.*}}: tensor<2x4xf32>, %{{.*}}: tensor<4x4xf32>)
// CHECK-NOT: par.all_reduce
// CHECK-LABEL: par.fragment @train.s1.forward
// CHECK: par.dot {{.*}} -> tensor<2x2xf32>
// CHECK: par.all_reduce  sum %{{.*}} over ["tp"] : (tensor<2x2xf32>) -> tensor<2x2xf32>
// CHECK-LABEL: par.fragment @train.s0.backward
// CHECK-NOT: par.all_reduce
// CHECK-LABEL: par.fragment @train.s0.update(
// CHECK-LABEL: par.fragment @train.s0.reduce2(%{{.*}}: tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK: par.all_reduce  sum %{{.*}} over ["dp"]
// CHECK: par.run @train.s0.reduce2
