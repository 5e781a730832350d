// One microbatch has the sum over the batch in the loop: ops that use it together with the samples stay in the loop.
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

// A value of the only microbatch for a variable (a moving statistic) is written after the loop.
// CHECK-LABEL: par.step @train
// CHECK: %[[MADE:.*]]:2 = par.loop 1
// CHECK: par.yield [sum, sum]
// CHECK: par.write %[[MADE]]#0 to @mean
par.variable @w parameter : tensor<8x4xf32>
par.variable @mean buffer : tensor<4xf32>
par.step @train(%x: tensor<8x4xf32>) -> tensor<f32> attributes {inputs = ["x"], outputs = ["loss"]} {
  %w = par.read @w : tensor<8x4xf32>
  %y = par.multiply %x, %w : tensor<8x4xf32>
  %s = par.reduce sum %y dims [0] : tensor<8x4xf32> to tensor<4xf32>
  %m = par.read @mean : tensor<4xf32>
  %n = par.add %m, %s : tensor<4xf32>
  par.write %n to @mean : tensor<4xf32>
  %b = par.broadcast_in_dim %s dims [1] : tensor<4xf32> to tensor<8x4xf32>
  %c = par.subtract %y, %b : tensor<8x4xf32>
  %l = par.reduce sum %c dims [0, 1] : tensor<8x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
