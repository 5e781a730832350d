// Outputs have the batch first, wherever the model has it; those without one stay as they are.
// RUN: par-opt %s --par-move-batch-first=microbatches=2 --split-input-file | FileCheck %s

par.stage @s0 <> ranks [0]
// CHECK: par.step @predict(%[[X:.*]]: tensor<4x3xf32>) -> (tensor<4x3x2xf32>, tensor<4x3xf32>, tensor<3xi64>)
// CHECK-SAME: par.output_batch_dims = {y = 2 : i64}
par.step @predict(%x: tensor<4x3xf32>) -> (tensor<3x2x4xf32>, tensor<4x3xf32>, tensor<3xi64>)
    attributes {inputs = ["x"], outputs = ["y", "z", "k"]} {
  %t = par.transpose %x [1, 0] : tensor<4x3xf32> to tensor<3x4xf32>
  %0 = par.broadcast_in_dim %t dims [0, 2] : tensor<3x4xf32> to tensor<3x2x4xf32>
  %1 = par.iota dim 0 : tensor<3xi64>
  // CHECK: %[[Y:.*]] = par.broadcast_in_dim {{.*}} dims [0, 2]
  // CHECK: %[[T:.*]] = par.transpose %[[Y]] [2, 0, 1] : tensor<3x2x4xf32> to tensor<4x3x2xf32>
  // CHECK: par.return %[[T]], %[[X]]
  par.return %0, %x, %1 : tensor<3x2x4xf32>, tensor<4x3xf32>, tensor<3xi64>
}
