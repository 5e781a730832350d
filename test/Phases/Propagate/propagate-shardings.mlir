// Two annotated weights and a sharded batch give every value its sharding; gradients stay sums until the loop ends.
// RUN: par-opt %S/Inputs/two-stages.mlir --par-slice-microbatches=microbatches=4 --par-assign-stages --par-form-fragments --par-propagate-shardings=batch-axes=dp --par-verify-propagate | FileCheck %s
// RUN: par-opt %s --par-propagate-shardings --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=UNIFORM
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

// -----

// A broadcast of a scalar ties no values together: @v is not sharded, though @w of the same shape is.
// UNIFORM: par.variable @w {{.*}} at [!par.dist<tensor<4x4xf32>, @s0, [{"tp"}, {}]>]
// UNIFORM: par.variable @v {{.*}} at [!par.dist<tensor<4x4xf32>, @s0, [{}, {}]>]
par.stage @s0 <"tp"=2> ranks [0, 1]
par.variable @w parameter : tensor<4x4xf32> sharding <[{"tp"}, {}]>
par.variable @v parameter : tensor<4x4xf32>
par.fragment @f(%w: tensor<4x4xf32>, %v: tensor<4x4xf32>, %c: tensor<f32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {stage = @s0, kind = #par.fragment_kind<update>} {
  %0 = par.broadcast_in_dim %c dims [] : tensor<f32> to tensor<4x4xf32>
  %1 = par.multiply %w, %0 : tensor<4x4xf32>
  %2 = par.multiply %v, %0 : tensor<4x4xf32>
  par.return %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}
par.step @train(%c: !par.dist<tensor<f32>, @s0, ?>) -> !par.dist<tensor<4x4xf32>, @s0, ?> {
  %w = par.read @w : !par.dist<tensor<4x4xf32>, @s0, ?>
  %v = par.read @v : !par.dist<tensor<4x4xf32>, @s0, ?>
  %0:2 = par.run @f(%w, %v, %c) : (!par.dist<tensor<4x4xf32>, @s0, ?>, !par.dist<tensor<4x4xf32>, @s0, ?>, !par.dist<tensor<f32>, @s0, ?>) -> (!par.dist<tensor<4x4xf32>, @s0, ?>, !par.dist<tensor<4x4xf32>, @s0, ?>)
  par.write %0#0 to @w : !par.dist<tensor<4x4xf32>, @s0, ?>
  par.return %0#1 : !par.dist<tensor<4x4xf32>, @s0, ?>
}

// -----

// A carried value of two microbatches is read sharded by rows and written sharded by columns, over one axis: it is
// carried whole.
// UNIFORM: par.variable @c carried {{.*}} at [!par.dist<tensor<2x4x4xf32>, @s0, [{}, {}, {}]>]
// UNIFORM: par.transpose {{.*}}[#par.sharding<[{}, {"tp"}]>]
// UNIFORM: par.yield [stack] {{.*}} : !par.dist<tensor<4x4xf32>, @s0, [{}, {}]>
par.stage @s0 <"tp"=2> ranks [0, 1]
par.variable @rows parameter : tensor<4x4xf32> sharding <[{"tp"}, {}]>
par.variable @c carried : tensor<2x4x4xf32>
par.fragment @f(%c: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  %0 = par.add %c, %w : tensor<4x4xf32>
  %1 = par.transpose %0 [1, 0] : tensor<4x4xf32> to tensor<4x4xf32>
  %2 = par.tanh %1 : tensor<4x4xf32>
  par.return %2 : tensor<4x4xf32>
}
par.step @predict() {
  %c = par.read @c : !par.dist<tensor<2x4x4xf32>, @s0, ?>
  %w = par.read @rows : !par.dist<tensor<4x4xf32>, @s0, ?>
  %0 = par.loop 2 (%c) : (!par.dist<tensor<2x4x4xf32>, @s0, ?>) -> !par.dist<tensor<2x4x4xf32>, @s0, ?> {
  ^bb0(%i: tensor<i64>, %ci: !par.dist<tensor<4x4xf32>, @s0, ?>):
    %1 = par.run @f(%ci, %w) : (!par.dist<tensor<4x4xf32>, @s0, ?>, !par.dist<tensor<4x4xf32>, @s0, ?>) -> !par.dist<tensor<4x4xf32>, @s0, ?>
    par.yield [stack] %1 : !par.dist<tensor<4x4xf32>, @s0, ?>
  }
  par.write %0 to @c : !par.dist<tensor<2x4x4xf32>, @s0, ?>
  par.return
}
