// Two annotated weights and a sharded batch give every value its sharding; gradients stay sums until the loop ends.
// RUN: par-opt %S/Inputs/two-stages.mlir --par-slice-microbatches=microbatches=4 --par-assign-stages --par-form-fragments --par-propagate-shardings=batch-axes=dp --par-verify-propagate | FileCheck %s
// RUN: par-opt %s --par-propagate-shardings --split-input-file --verify-diagnostics
// RUN: not par-opt %S/Inputs/two-stages.mlir --par-propagate-shardings=batch-axes=ep 2>&1 | FileCheck %s --check-prefix=BATCH
// BATCH: error: the batch is over axis "ep", which no stage's mesh has

// CHECK: par.variable @w1 {{.*}} at [!par.dist<tensor<4x8xf32>, @s0, [{}, {"tp"}]>]
// CHECK-LABEL: par.fragment @train.s0.forward
// CHECK: par.dot {{.*}}[#par.sharding<[{"dp"}, {"tp"}]>]
// CHECK-LABEL: par.fragment @train.s1.forward
// CHECK: par.dot {{.*}}[#par.sharding<[{"dp"}, {}]>]
// CHECK: par.reduce  sum {{.*}}[#par.sharding<[], unreduced={"dp"}>]
// CHECK-LABEL: par.fragment @train.s1.backward
// CHECK: par.dot {{.*}}[#par.sharding<[{"tp"}, {}], unreduced={"dp"}>]
// CHECK: par.reshard {{.*}} : <tensor<4x8xf32>, @s0, [{}, {"tp"}], unreduced={"dp"}> to <tensor<4x8xf32>, @s0, [{}, {"tp"}]>

par.stage @s0 <"dp"=2> ranks [0, 1]
// expected-error @below {{is sharded over axis "tp", which no stage's mesh has}}
par.variable @w parameter : tensor<4xf32> sharding <[{"tp"}]>
