// One microbatch knows a sum over the batch where it is made: what needs it together with the samples stays in the loop.
// RUN: par-opt %s --par-slice-microbatches=microbatches=1 | FileCheck %s

// CHECK: par.loop 1
// CHECK: par.reduce sum {{.*}} dims [0]
// CHECK: par.subtract
// CHECK: par.yield [sum]
// CHECK-NOT: par.subtract
par.step @eval(%x: tensor<8x4xf32>) -> tensor<f32> attributes {inputs = ["x"], outputs = ["loss"]} {
  %s = par.reduce sum %x dims [0] : tensor<8x4xf32> to tensor<4xf32>
  %b = par.broadcast_in_dim %s dims [1] : tensor<4xf32> to tensor<8x4xf32>
  %c = par.subtract %x, %b : tensor<8x4xf32>
  %q = par.multiply %c, %c : tensor<8x4xf32>
  %l = par.reduce sum %q dims [0, 1] : tensor<8x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
