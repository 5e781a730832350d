// A counter that the model reads counts the steps of training, and is 0 elsewhere.
// RUN: par-opt %s --par-advance-counters | FileCheck %s

par.variable @draws counter : tensor<f32>

// CHECK-LABEL: par.step @eval
// CHECK: %[[ZERO:.*]] = par.constant dense<0.000000e+00> : tensor<f32>
// CHECK: par.return %[[ZERO]]
par.step @eval() -> tensor<f32> {
  %n = par.read @draws : tensor<f32>
  par.return %n : tensor<f32>
}

// CHECK-LABEL: par.step @train
// CHECK: %[[BEFORE:.*]] = par.read @draws
// CHECK-NEXT: %[[ONE:.*]] = par.constant dense<1.000000e+00>
// CHECK-NEXT: %[[COUNT:.*]] = par.add %[[BEFORE]], %[[ONE]]
// CHECK: par.write %[[COUNT]] to @draws
// CHECK: par.return %[[COUNT]]
par.step @train() -> tensor<f32> {
  %n = par.read @draws : tensor<f32>
  par.return %n : tensor<f32>
}
