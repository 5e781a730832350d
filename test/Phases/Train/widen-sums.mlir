// A matmul that only a convert reads, through layout ops, gives its sum unrounded; each use has its own convert.
// RUN: par-opt %s --par-widen-sums | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-widen-sums'

par.variable @w parameter : tensor<4x2xf32>

// CHECK-LABEL: par.step @eval
// CHECK: %[[SUM:.*]] = par.dot %{{.*}}, %{{.*}} contracting [0] x [0] : (tensor<8x2xbf16>, tensor<8x4xbf16>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[TURNED:.*]] = par.transpose %[[SUM]] [1, 0] : tensor<2x4xf32>
// CHECK-NOT: par.convert %[[TURNED]]
// A matmul with another user is rounded.
// CHECK: %[[KEPT:.*]] = par.dot {{.*}} -> tensor<8x2xbf16>
// CHECK: %[[A:.*]] = par.convert %[[KEPT]] : tensor<8x2xbf16> to tensor<8x2xf32>
// CHECK-NEXT: par.multiply %[[A]],
// CHECK: %[[B:.*]] = par.convert %[[KEPT]] : tensor<8x2xbf16> to tensor<8x2xf32>
// CHECK-NEXT: par.add %{{.*}}, %[[B]]
// Both matmuls of the weight round it for themselves, after the same layout op: the first one's ops precede it.
// CHECK: par.transpose %{{.*}} [1, 0] : tensor<4x2xf32>
// CHECK-NEXT: %[[N:.*]] = par.convert
// CHECK-NEXT: par.dot %{{.*}}, %[[N]]
par.step @eval(%x: tensor<8x4xbf16>, %ct: tensor<8x2xbf16>, %f: tensor<8x2xf32>) -> (tensor<4x2xf32>, tensor<8x2xf32>, tensor<8x2xbf16>) {
  %w = par.read @w : tensor<4x2xf32>
  %0 = par.dot %ct, %x contracting [0] x [0] : (tensor<8x2xbf16>, tensor<8x4xbf16>) -> tensor<2x4xbf16>
  %1 = par.transpose %0 [1, 0] : tensor<2x4xbf16> to tensor<4x2xbf16>
  %2 = par.convert %1 : tensor<4x2xbf16> to tensor<4x2xf32>
  %turned = par.transpose %w [1, 0] : tensor<4x2xf32> to tensor<2x4xf32>
  %narrow = par.convert %turned : tensor<2x4xf32> to tensor<2x4xbf16>
  %3 = par.dot %x, %narrow contracting [1] x [1] : (tensor<8x4xbf16>, tensor<2x4xbf16>) -> tensor<8x2xbf16>
  %wide = par.convert %3 : tensor<8x2xbf16> to tensor<8x2xf32>
  %4 = par.multiply %wide, %f : tensor<8x2xf32>
  %5 = par.add %4, %wide : tensor<8x2xf32>
  %6 = par.add %3, %ct : tensor<8x2xbf16>
  %7 = par.dot %x, %narrow contracting [1] x [1] : (tensor<8x4xbf16>, tensor<2x4xbf16>) -> tensor<8x2xbf16>
  %8 = par.add %6, %7 : tensor<8x2xbf16>
  par.return %2, %5, %8 : tensor<4x2xf32>, tensor<8x2xf32>, tensor<8x2xbf16>
}
