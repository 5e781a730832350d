// A buffer that @eval updates is written only by @train.
// RUN: par-opt %s --par-differentiate --par-add-optimizer --par-verify-train | FileCheck %s

par.variable @w parameter : tensor<4xf32>
par.variable @mean buffer : tensor<4xf32>

// CHECK-LABEL: par.step @eval
// CHECK-NOT: par.write
// CHECK-NOT: par.read @mean
// CHECK-LABEL: par.step @train
// CHECK: par.write %{{.*}} to @mean
// CHECK: par.write %{{.*}} to @w
par.step @eval(%x: tensor<4xf32>) -> tensor<f32> attributes {inputs = ["x"], outputs = ["loss"]} {
  %w = par.read @w : tensor<4xf32>
  %m = par.read @mean : tensor<4xf32>
  %y = par.multiply %x, %w : tensor<4xf32>
  %n = par.add %m, %y : tensor<4xf32>
  par.write %n to @mean : tensor<4xf32>
  %l = par.reduce sum %y dims [0] : tensor<4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
