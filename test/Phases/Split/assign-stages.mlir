// Updates go where their variable is, counters are updated on every stage, and a forward value never goes backwards.
// RUN: par-opt %S/Inputs/two-stages.mlir --par-slice-microbatches=microbatches=2 --par-assign-stages | FileCheck %s
// RUN: par-opt %s --par-assign-stages --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=ONE

// CHECK: par.sgd {{.*}}stage = 0
// CHECK: par.sgd {{.*}}stage = 1
// CHECK: par.write {{.*}} to @step
// CHECK: par.write {{.*}} to @step

// Values that depend on a sum over stages, too: each stage computes the counter from its own result.
// RUN: par-opt %S/Inputs/two-stages.mlir --par-scale-loss --par-clip-gradients --par-skip-overflow --par-slice-microbatches=microbatches=2 --par-assign-stages | FileCheck %s --check-prefix=SCALE
// RUN: par-opt %S/Inputs/two-stages.mlir --par-scale-loss --par-clip-gradients --par-skip-overflow --par-check-phases='passes=par-slice-microbatches{microbatches=2},par-assign-stages,par-form-fragments'
// SCALE: %[[SUM:.*]]:2 = par.stage_all_reduce
// SCALE: par.is_finite %[[SUM]]#0 {stage = 0
// SCALE: par.is_finite %[[SUM]]#1 {stage = 1
// SCALE-COUNT-2: par.write {{.*}} to @loss_scale

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @w parameter : tensor<4xf32>
par.step @eval(%x: tensor<2x4xf32>) -> tensor<4xf32> {
  %w = par.read @w : tensor<4xf32>
  %r = par.loop 2 (%x) : (tensor<2x4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %xi: tensor<4xf32>):
    // expected-note @below {{the value comes from here}}
    %a = par.multiply %xi, %w {stage = 1 : i64} : tensor<4xf32>
    // expected-error @below {{is on stage 0 but needs a value of stage 1; cut elsewhere}}
    %b = par.negate %a {stage = 0 : i64} : tensor<4xf32>
    par.yield [sum] %b : tensor<4xf32>
  }
  par.return %r : tensor<4xf32>
}

// -----

// A sum over stages that only one stage uses is computed there, from parts that the others send.
// ONE-LABEL: par.step @norm
// ONE-NOT: par.stage_all_reduce
// ONE: %[[A:.*]] = par.reduce {{.*}}stage = 0
// ONE: %[[B:.*]] = par.reduce {{.*}}stage = 1
// ONE: %[[S:.*]] = par.add %[[A]], %[[B]] {stage = 0
// ONE: par.sqrt %[[S]] {stage = 0
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @w parameter : tensor<4xf32>
par.variable @v parameter : tensor<4xf32>
par.step @norm(%x: tensor<2x4xf32>) -> tensor<f32> {
  %w = par.read @w : tensor<4xf32>
  %v = par.read @v : tensor<4xf32>
  %r:2 = par.loop 2 (%x) : (tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %xi: tensor<4xf32>):
    %a = par.multiply %xi, %w {stage = 0 : i64} : tensor<4xf32>
    %b = par.multiply %a, %v {stage = 1 : i64} : tensor<4xf32>
    par.yield [sum, sum] %a, %b : tensor<4xf32>, tensor<4xf32>
  }
  %0 = par.reduce sum %r#0 dims [0] : tensor<4xf32> to tensor<f32>
  %1 = par.reduce sum %r#1 dims [0] : tensor<4xf32> to tensor<f32>
  %2:2 = par.stage_all_reduce sum %0, %1 : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %3 = par.sqrt %2#0 : tensor<f32>
  par.return %3 : tensor<f32>
}

// -----

// A counter that both stages use in their loops is updated on both, even if the written value has no other use.
// ONE-LABEL: par.step @draws
// ONE-COUNT-2: par.write {{.*}} to @n
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @n counter : tensor<4xf32>
par.variable @w parameter : tensor<4xf32>
par.variable @v parameter : tensor<4xf32>
par.step @draws(%x: tensor<2x4xf32>) -> tensor<4xf32> {
  %n = par.read @n : tensor<4xf32>
  %w = par.read @w : tensor<4xf32>
  %v = par.read @v : tensor<4xf32>
  %one = par.constant dense<1.0> : tensor<4xf32>
  %r = par.loop 2 (%x) : (tensor<2x4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %xi: tensor<4xf32>):
    %a = par.multiply %xi, %w {stage = 0 : i64} : tensor<4xf32>
    %b = par.multiply %a, %n {stage = 0 : i64} : tensor<4xf32>
    %c = par.multiply %b, %v {stage = 1 : i64} : tensor<4xf32>
    %d = par.multiply %c, %n {stage = 1 : i64} : tensor<4xf32>
    par.yield [sum] %d : tensor<4xf32>
  }
  %next = par.add %n, %one : tensor<4xf32>
  par.write %next to @n : tensor<4xf32>
  par.return %r : tensor<4xf32>
}

// -----

// A forward op that was placed stays with its latest operand outside of the loops, too: a loss of parts that several
// stages have is given where training gives it.
// ONE-LABEL: par.step @parts
// ONE: par.multiply {{.*}} {stage = 0
// ONE: par.multiply {{.*}} {stage = 1
// ONE: par.multiply {{.*}} {stage = 0
// ONE: par.add {{.*}} {stage = 1
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @w parameter : tensor<4xf32>
par.variable @v parameter : tensor<4xf32>
par.step @parts(%x: tensor<2x4xf32>) -> tensor<4xf32> {
  %w = par.read @w : tensor<4xf32>
  %v = par.read @v : tensor<4xf32>
  %r:2 = par.loop 2 (%x) : (tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %xi: tensor<4xf32>):
    %a = par.multiply %xi, %w {stage = 0 : i64} : tensor<4xf32>
    %b = par.multiply %a, %v {stage = 1 : i64} : tensor<4xf32>
    par.yield [sum, sum] %a, %b : tensor<4xf32>, tensor<4xf32>
  }
  %0 = par.multiply %r#0, %r#0 {stage = 0 : i64} : tensor<4xf32>
  %1 = par.add %0, %r#1 {stage = 1 : i64} : tensor<4xf32>
  par.return %1 : tensor<4xf32>
}
