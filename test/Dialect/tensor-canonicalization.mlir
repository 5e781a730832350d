// Canonicalization folds identities, splats under layout ops, reshapes of reshapes.
// RUN: par-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: par.step @identities(%arg0: tensor<4x8xf32>)
// CHECK-NEXT: par.return %arg0 : tensor<4x8xf32>
par.step @identities(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = par.broadcast_in_dim %x dims [0, 1] : tensor<4x8xf32> to tensor<4x8xf32>
  %1 = par.reshape %0 : tensor<4x8xf32> to tensor<4x8xf32>
  %2 = par.transpose %1 [0, 1] : tensor<4x8xf32> to tensor<4x8xf32>
  %3 = par.slice %2 [0, 0] to [4, 8] by [1, 1] : tensor<4x8xf32> to tensor<4x8xf32>
  %4 = par.convert %3 : tensor<4x8xf32> to tensor<4x8xf32>
  %5 = par.reduce sum %4 dims [] : tensor<4x8xf32> to tensor<4x8xf32>
  par.return %5 : tensor<4x8xf32>
}

// A transpose that moves something stays, and so does a broadcast.
// CHECK-LABEL: par.step @kept
// CHECK-NEXT: par.transpose
// CHECK-NEXT: par.broadcast_in_dim
// CHECK-NEXT: par.return
par.step @kept(%x: tensor<4x4xf32>) -> tensor<2x4x4xf32> {
  %0 = par.transpose %x [1, 0] : tensor<4x4xf32> to tensor<4x4xf32>
  %1 = par.broadcast_in_dim %0 dims [1, 2] : tensor<4x4xf32> to tensor<2x4x4xf32>
  par.return %1 : tensor<2x4x4xf32>
}

// CHECK-LABEL: par.step @reshapes
// CHECK-NEXT: par.reshape %arg0 : tensor<4x8xf32> to tensor<2x16xf32>
// CHECK-NEXT: par.return
par.step @reshapes(%x: tensor<4x8xf32>) -> tensor<2x16xf32> {
  %0 = par.reshape %x : tensor<4x8xf32> to tensor<32xf32>
  %1 = par.reshape %0 : tensor<32xf32> to tensor<2x16xf32>
  par.return %1 : tensor<2x16xf32>
}

// CHECK-LABEL: par.step @constants
// CHECK-DAG: par.constant dense<2.000000e+00> : tensor<2x2xf32>
// CHECK-DAG: par.constant dense<{{\[\[}}1, 2], [3, 4]]> : tensor<2x2xi64>
// CHECK-NOT: par.{{broadcast_in_dim|slice|reshape}}
// CHECK: par.return
par.step @constants() -> (tensor<2x2xf32>, tensor<2x2xi64>) {
  %0 = par.constant dense<2.0> : tensor<f32>
  %1 = par.broadcast_in_dim %0 dims [] : tensor<f32> to tensor<4x2xf32>
  %2 = par.slice %1 [1, 0] to [3, 2] by [1, 1] : tensor<4x2xf32> to tensor<2x2xf32>
  %3 = par.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %4 = par.reshape %3 : tensor<4xi64> to tensor<2x2xi64>
  par.return %2, %4 : tensor<2x2xf32>, tensor<2x2xi64>
}
