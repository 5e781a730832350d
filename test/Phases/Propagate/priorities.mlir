// Rules of a lower priority are propagated first; within one priority, those of weights.
// RUN: par-opt %s --par-slice-microbatches=microbatches=1 --par-assign-stages --par-form-fragments --par-propagate-shardings=batch-axes=dp --par-verify-propagate | FileCheck %s --check-prefixes=CHECK,WEIGHT
// RUN: sed 's/> : tensor<8x4x12xf32> \/\/ said/> priority 0 : tensor<8x4x12xf32>/' %s | par-opt --par-slice-microbatches=microbatches=1 --par-assign-stages --par-form-fragments --par-propagate-shardings=batch-axes=dp --par-verify-propagate | FileCheck %s --check-prefixes=CHECK,VALUE
// RUN: par-opt %s --par-slice-microbatches=microbatches=1 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp priorities=w=2,v=2' --par-verify-propagate | FileCheck %s --check-prefixes=CHECK,VALUE
// After the broadcast value (2), tp finds the dim of @v taken.
// RUN: par-opt %s --par-slice-microbatches=microbatches=1 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp parameter-axes=dp state-axes=dp gradient-axes=dp priorities=v=3' --par-verify-propagate | FileCheck %s --check-prefix=SPREAD

// CHECK-DAG: par.variable @w parameter {{.*}} at [!par.dist<tensor<6x12xf32>, @s0, [{}, {"tp"}]>]
// WEIGHT: par.tanh {{.*}}[#par.sharding<[{"dp"}, {}, {"tp"}]>]
// VALUE: par.tanh {{.*}}[#par.sharding<[{"dp"}, {"tp"}, {}]>]
// VALUE: par.gelu {{.*}}[#par.sharding<[{"dp"}, {"tp"}, {}]>]

// A value that may stay a sum, and is no part of the first propagation, stays one: its producer and the ops between
// leave it a sum, and its uses reduce it.
// WEIGHT: par.dot {{.*}}[#par.sharding<[{"dp"}, {}, {}], unreduced={"tp"}>]
// WEIGHT: par.constrain {{.*}}[#par.sharding<[{"dp"}, {}, {}], unreduced={"tp"}>]
// WEIGHT: par.gelu {{.*}}[#par.sharding<[{"dp"}, {}, {}]>]

// SPREAD-DAG: par.variable @w parameter {{.*}} at [!par.dist<tensor<6x12xf32>, @s0, [{"dp"}, {"tp"}]>]
// SPREAD-DAG: par.variable @v parameter {{.*}} at [!par.dist<tensor<12x6xf32>, @s0, [{"dp"}, {}]>]

par.stage @s0 <"dp"=2, "tp"=2> ranks [0, 1, 2, 3]
par.variable @w parameter : tensor<6x12xf32> sharding <[{?}, {"tp", ?}]>
par.variable @v parameter : tensor<12x6xf32> sharding <[{"tp", ?}, {?}]>
par.step @eval(%x: tensor<8x4x6xf32>) -> tensor<f32> attributes {inputs = ["x"], outputs = ["loss"]} {
  %w = par.read @w : tensor<6x12xf32>
  %v = par.read @v : tensor<12x6xf32>
  %h = par.dot %x, %w contracting [2] x [0] {stage = 0 : i64} : (tensor<8x4x6xf32>, tensor<6x12xf32>) -> tensor<8x4x12xf32>
  %c = par.constrain %h <[{?}, {"tp", ?}, {?}]> : tensor<8x4x12xf32> // said
  %t = par.tanh %c {stage = 0 : i64} : tensor<8x4x12xf32>
  %y = par.dot %t, %v contracting [2] x [0] {stage = 0 : i64} : (tensor<8x4x12xf32>, tensor<12x6xf32>) -> tensor<8x4x6xf32>
  %p = par.constrain %y <[{?}, {?}, {?}], unreduced={"tp"}> {stage = 0 : i64} : tensor<8x4x6xf32>
  %s = par.gelu %p {stage = 0 : i64} : tensor<8x4x6xf32>
  %l = par.reduce sum %s dims [0, 1, 2] {stage = 0 : i64} : tensor<8x4x6xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
