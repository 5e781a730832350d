// A scalar beside the loss that two microbatches cannot add up is dropped with a warning; the others stay.
// RUN: par-opt %s --par-drop-coupled-metrics=microbatches=2 --verify-diagnostics | FileCheck %s
// RUN: par-opt %s --par-drop-coupled-metrics=microbatches=1 | FileCheck %s --check-prefix=ONE

par.stage @s0 <> ranks [0]
// CHECK: outputs = ["loss", "mean"]
// CHECK-NOT: par.reduce max
// ONE: outputs = ["loss", "largest", "mean"]
// expected-warning @+1 {{"largest" is not computed: 2 microbatches cannot add it up}}
par.step @eval(%x: tensor<4xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
    attributes {inputs = ["x"], outputs = ["loss", "largest", "mean"]} {
  %loss = par.reduce sum %x dims [0] : tensor<4xf32> to tensor<f32>
  %largest = par.reduce max %x dims [0] : tensor<4xf32> to tensor<f32>
  %mean = par.negate %loss : tensor<f32>
  par.return %loss, %largest, %mean : tensor<f32>, tensor<f32>, tensor<f32>
}
