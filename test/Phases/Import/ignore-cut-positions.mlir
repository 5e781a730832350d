// Positions sliced off the end of a loss are ignored in its sum; the values from which the loss is computed are not
// sliced.
// RUN: par-opt --par-ignore-cut-positions --split-input-file %s | FileCheck %s

// Logits without their last position against labels without their first: the slice of the logits is gone, the labels are padded.
// CHECK-LABEL: par.step @eval
par.step @eval(%z: tensor<2x4x8xf32>, %labels: tensor<2x4xi64>) -> tensor<f32> attributes {inputs = ["z", "labels"]} {
  // CHECK: %[[y:.*]] = par.slice %{{.*}} [0, 1] to [2, 4] by [1, 1]
  // CHECK: %[[padded:.*]] = par.pad %[[y]] low [0, 0] high [0, 1] value -7 : i64 : tensor<2x3xi64> to tensor<2x4xi64>
  // CHECK: %[[t:.*]], %{{.*}} = par.cross_entropy %{{arg0|z}}, %[[padded]] ignore -7
  // CHECK-NEXT: par.reduce sum %[[t]] dims [0, 1] : tensor<2x4xf32> to tensor<f32>
  %0 = par.slice %z [0, 0, 0] to [2, 3, 8] by [1, 1, 1] : tensor<2x4x8xf32> to tensor<2x3x8xf32>
  %y = par.slice %labels [0, 1] to [2, 4] by [1, 1] : tensor<2x4xi64> to tensor<2x3xi64>
  %t, %lse = par.cross_entropy %0, %y ignore -7 : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %1 = par.reduce sum %t dims [0, 1] : tensor<2x3xf32> to tensor<f32>
  par.return %1 : tensor<f32>
}

// -----

// Through a head after the slice, a bias, a cap of the logits and smoothing, whose terms are set to zero in the sum.
// CHECK-LABEL: par.step @eval
par.step @eval(%h: tensor<2x4x3xf32>, %w: tensor<3x8xf32>, %b: tensor<8xf32>, %y: tensor<2x3xi64>) -> tensor<f32> attributes {inputs = ["h", "w", "b", "y"]} {
  // CHECK-NOT: par.slice
  // CHECK: par.dot {{.*}} -> tensor<2x4x8xf32>
  // CHECK: par.broadcast_in_dim {{.*}} to tensor<2x4x8xf32>
  // CHECK: par.cross_entropy {{.*}} -> (tensor<2x4xf32>, tensor<2x4xf32>)
  // CHECK: %[[terms:.*]] = par.subtract {{.*}} : tensor<2x4xf32>
  // CHECK: %[[place:.*]] = par.iota dim 1 : tensor<2x4xi64>
  // CHECK: %[[counts:.*]] = par.compare lt %[[place]], %{{.*}}
  // CHECK: %[[masked:.*]] = par.select %[[counts]], %[[terms]]
  // CHECK: par.reduce sum %[[masked]] dims [0, 1] : tensor<2x4xf32> to tensor<f32>
  %0 = par.slice %h [0, 0, 0] to [2, 3, 3] by [1, 1, 1] : tensor<2x4x3xf32> to tensor<2x3x3xf32>
  %1 = par.dot %0, %w contracting [2] x [0] : (tensor<2x3x3xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %2 = par.broadcast_in_dim %b dims [2] : tensor<8xf32> to tensor<2x3x8xf32>
  %3 = par.add %1, %2 : tensor<2x3x8xf32>
  %half = par.constant dense<0.5> : tensor<2x3x8xf32>
  %4 = par.multiply %3, %half : tensor<2x3x8xf32>
  %5 = par.tanh %4 : tensor<2x3x8xf32>
  %t, %lse = par.cross_entropy %5, %y ignore -100 : (tensor<2x3x8xf32>, tensor<2x3xi64>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %6 = par.reduce sum %5 dims [2] : tensor<2x3x8xf32> to tensor<2x3xf32>
  %7 = par.subtract %t, %6 : tensor<2x3xf32>
  %8 = par.reduce sum %7 dims [0, 1] : tensor<2x3xf32> to tensor<f32>
  par.return %8 : tensor<f32>
}

// -----

// A cut that something else reads stays, for all.
// CHECK-LABEL: par.step @predict
par.step @predict(%z: tensor<2x4x8xf32>) -> (tensor<f32>, tensor<2x3x8xf32>) attributes {inputs = ["z"], outputs = ["sum", "z"]} {
  // CHECK: %[[z:.*]] = par.slice
  // CHECK: par.exp %[[z]] : tensor<2x3x8xf32>
  %0 = par.slice %z [0, 0, 0] to [2, 3, 8] by [1, 1, 1] : tensor<2x4x8xf32> to tensor<2x3x8xf32>
  %1 = par.exp %0 : tensor<2x3x8xf32>
  %2 = par.reduce sum %1 dims [0, 1, 2] : tensor<2x3x8xf32> to tensor<f32>
  par.return %2, %0 : tensor<f32>, tensor<2x3x8xf32>
}

// -----

// Floats that have no more positions are not made up: differences of neighbours stay as they are.
// CHECK-LABEL: par.step @predict
par.step @predict(%x: tensor<2x4xf32>) -> tensor<f32> attributes {inputs = ["x"], outputs = ["sum"]} {
  // CHECK: par.subtract {{.*}} : tensor<2x3xf32>
  %0 = par.slice %x [0, 0] to [2, 3] by [1, 1] : tensor<2x4xf32> to tensor<2x3xf32>
  %1 = par.slice %x [0, 1] to [2, 4] by [1, 1] : tensor<2x4xf32> to tensor<2x3xf32>
  %2 = par.subtract %0, %1 : tensor<2x3xf32>
  %3 = par.reduce sum %2 dims [0, 1] : tensor<2x3xf32> to tensor<f32>
  par.return %3 : tensor<f32>
}

// -----

// Nor is a half computed that no loss needs, nor values that a maximum or an attention mixes along the sequence.
// CHECK-LABEL: par.step @predict
par.step @predict(%x: tensor<2x64xf32>) -> (tensor<f32>, tensor<2xf32>) attributes {inputs = ["x"], outputs = ["half", "max"]} {
  // CHECK: par.reduce sum {{.*}} : tensor<2x32xf32> to tensor<f32>
  // CHECK: par.reduce max {{.*}} : tensor<2x63xf32> to tensor<2xf32>
  %0 = par.slice %x [0, 0] to [2, 32] by [1, 1] : tensor<2x64xf32> to tensor<2x32xf32>
  %1 = par.reduce sum %0 dims [0, 1] : tensor<2x32xf32> to tensor<f32>
  %2 = par.slice %x [0, 0] to [2, 63] by [1, 1] : tensor<2x64xf32> to tensor<2x63xf32>
  %3 = par.reduce max %2 dims [1] : tensor<2x63xf32> to tensor<2xf32>
  par.return %1, %3 : tensor<f32>, tensor<2xf32>
}
