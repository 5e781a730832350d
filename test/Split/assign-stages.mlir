// Updates go where their variable is, counters are updated on every stage, and a forward value never goes backwards.
// RUN: par-opt %S/Inputs/two-stages.mlir --par-slice-microbatches=microbatches=2 --par-assign-stages | FileCheck %s
// RUN: par-opt %s --par-assign-stages --split-input-file --verify-diagnostics

// CHECK: par.sgd {{.*}}stage = 0
// CHECK: par.sgd {{.*}}stage = 1
// CHECK: par.write {{.*}} to @step
// CHECK: par.write {{.*}} to @step

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
