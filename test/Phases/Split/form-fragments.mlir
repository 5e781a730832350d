// Forward and backward of a stage are fragments of their own; values cross by transfers, norms by an all-reduce across
// stages.
// RUN: par-opt %S/Inputs/two-stages.mlir --par-slice-microbatches=microbatches=4 --par-assign-stages --par-form-fragments --par-verify-split | FileCheck %s
// RUN: par-opt %s --par-form-fragments --verify-diagnostics

// CHECK-DAG: par.fragment @train.s1.before(%{{.*}}: tensor<4xi64>) -> tensor<f32>
// CHECK-DAG: par.fragment @train.s0.forward
// CHECK-DAG: par.fragment @train.s1.backward
// CHECK: par.step @train(%{{.*}}: !par.dist<tensor<4x4x4xf32>, @s0, ?>, %{{.*}}: !par.dist<tensor<4x4xi64>, @s1, ?>)
// CHECK: %[[F:.*]]:2 = par.run @train.s0.forward
// CHECK: par.transfer %[[F]]#0 : <tensor<4x8xf32>, @s0, ?> to <tensor<4x8xf32>, @s1, ?>
// CHECK: par.run @train.s1.forward
// CHECK: %[[B:.*]]:2 = par.run @train.s1.backward
// CHECK: par.transfer %[[B]]#1
// CHECK: par.run @train.s0.backward
// CHECK: par.stage_all_reduce  sum
// CHECK: par.write

// expected-error @below {{has no par.stage; Annotate makes at least one}}
module {}
