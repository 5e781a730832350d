// Dims that are joined, moved and taken apart again stay apart.
// RUN: par-opt %s -split-input-file --par-split-merged-dims | FileCheck %s
// RUN: par-opt %s -split-input-file --par-check-phases=passes=par-split-merged-dims -o /dev/null

// Heads [t, b, (h d)] -> [t, (b h), d] -> [(b h), t, d] -> [b, h, t, d], with a dim of one element on the way.
// CHECK-LABEL: par.step @predict
// CHECK-NEXT: %[[APART:.*]] = par.reshape %arg0 : tensor<5x2x12xf32> to tensor<5x2x3x4xf32>
// CHECK-NEXT: %[[MOVED:.*]] = par.transpose %[[APART]] [1, 2, 0, 3] : tensor<5x2x3x4xf32> to tensor<2x3x5x4xf32>
// CHECK-NEXT: par.return %[[MOVED]]
par.step @predict(%x: tensor<5x2x12xf32>) -> tensor<2x3x5x4xf32> {
  %0 = par.reshape %x : tensor<5x2x12xf32> to tensor<1x5x6x4xf32>
  %1 = par.reshape %0 : tensor<1x5x6x4xf32> to tensor<5x6x4xf32>
  %2 = par.transpose %1 [1, 0, 2] : tensor<5x6x4xf32> to tensor<6x5x4xf32>
  %3 = par.reshape %2 : tensor<6x5x4xf32> to tensor<2x3x5x4xf32>
  par.return %3 : tensor<2x3x5x4xf32>
}

// -----

// Taken apart in another way than they were joined; joined in the last reshape; and no reshape before.
// CHECK-LABEL: par.step @predict
// CHECK-NEXT: par.reshape
// CHECK-NEXT: par.transpose
// CHECK-NEXT: par.reshape
// CHECK-NEXT: par.reshape
// CHECK-NEXT: par.transpose
// CHECK-NEXT: par.reshape
// CHECK-NEXT: par.return
par.step @predict(%x: tensor<5x2x12xf32>, %y: tensor<4x6xf32>) -> (tensor<3x2x5x4xf32>, tensor<30x4xf32>, tensor<6x2x2xf32>) {
  %0 = par.reshape %x : tensor<5x2x12xf32> to tensor<5x6x4xf32>
  %1 = par.transpose %0 [1, 0, 2] : tensor<5x6x4xf32> to tensor<6x5x4xf32>
  %2 = par.reshape %1 : tensor<6x5x4xf32> to tensor<3x2x5x4xf32>
  %3 = par.reshape %1 : tensor<6x5x4xf32> to tensor<30x4xf32>
  %4 = par.transpose %y [1, 0] : tensor<4x6xf32> to tensor<6x4xf32>
  %5 = par.reshape %4 : tensor<6x4xf32> to tensor<6x2x2xf32>
  par.return %2, %3, %5 : tensor<3x2x5x4xf32>, tensor<30x4xf32>, tensor<6x2x2xf32>
}
