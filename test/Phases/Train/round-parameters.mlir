// A parameter that each use rounds, perhaps after moving it, is rounded first; one with a use in f32 stays as it is.
// RUN: par-opt %s --par-round-parameters | FileCheck %s
// RUN: par-opt %s --par-round-parameters=min-size=60 | FileCheck %s --check-prefix=SMALL
// RUN: par-opt %s --par-check-phases='passes=par-round-parameters'

par.variable @table parameter : tensor<9x4xf32>
par.variable @padded parameter : tensor<2x4xf32>
par.variable @both parameter : tensor<9x4xf32>
par.variable @still frozen : tensor<9x4xf32>

// CHECK-LABEL: par.step @eval
// CHECK: %[[TABLE:.*]] = par.read @table : tensor<9x4xf32>
// CHECK: %[[ROUNDED:.*]] = par.convert %[[TABLE]] {stage = 1 : i64} : tensor<9x4xf32> to tensor<9x4xbf16>
// CHECK-NEXT: %[[ROWS:.*]] = par.gather %[[ROUNDED]], {{.*}} : tensor<9x4xbf16>, tensor<8xi64> to tensor<8x4xbf16>
// The other use has a convert of its own, where it is.
// CHECK-NEXT: %[[OTHER:.*]] = par.convert %[[TABLE]] : tensor<9x4xf32> to tensor<9x4xbf16>
// CHECK-NEXT: par.dot %[[ROWS]], %[[OTHER]]
// Through several, and a number that is added between them.
// CHECK: %[[P:.*]] = par.convert %{{.*}} : tensor<2x4xf32> to tensor<2x4xbf16>
// CHECK-NEXT: %[[S:.*]] = par.slice %[[P]] {{.*}} to tensor<1x4xbf16>
// CHECK-NEXT: par.pad %[[S]] {{.*}}value 1.000000e+00 : bf16{{.*}} tensor<3x4xbf16>
// CHECK-NOT: par.convert
// CHECK: par.gather %{{.*}} : tensor<9x4xf32>, tensor<8xi64> to tensor<8x4xf32>
// CHECK: par.gather %{{.*}} : tensor<9x4xf32>, tensor<8xi64> to tensor<8x4xf32>

// SMALL-NOT: par.gather {{.*}}bf16
par.step @eval(%ids: tensor<8xi64>)
    -> (tensor<8x9xbf16>, tensor<3x4xbf16>, tensor<8x4xbf16>, tensor<9x4xf32>, tensor<8x4xbf16>) {
  %table = par.read @table : tensor<9x4xf32>
  %padded = par.read @padded : tensor<2x4xf32>
  %both = par.read @both : tensor<9x4xf32>
  %still = par.read @still : tensor<9x4xf32>
  %rows = par.gather %table, %ids dim 0 {stage = 1 : i64} : tensor<9x4xf32>, tensor<8xi64> to tensor<8x4xf32>
  %x = par.convert %rows {stage = 1 : i64} : tensor<8x4xf32> to tensor<8x4xbf16>
  %w = par.convert %table : tensor<9x4xf32> to tensor<9x4xbf16>
  %y = par.dot %x, %w contracting [1] x [1] : (tensor<8x4xbf16>, tensor<9x4xbf16>) -> tensor<8x9xbf16>
  %first = par.slice %padded [0, 0] to [1, 4] by [1, 1] : tensor<2x4xf32> to tensor<1x4xf32>
  %more = par.pad %first low [1, 0] high [1, 0] value 1.0 : f32 : tensor<1x4xf32> to tensor<3x4xf32>
  %p = par.convert %more : tensor<3x4xf32> to tensor<3x4xbf16>
  %b = par.gather %both, %ids dim 0 : tensor<9x4xf32>, tensor<8xi64> to tensor<8x4xf32>
  %c = par.convert %b : tensor<8x4xf32> to tensor<8x4xbf16>
  %f = par.gather %still, %ids dim 0 : tensor<9x4xf32>, tensor<8xi64> to tensor<8x4xf32>
  %g = par.convert %f : tensor<8x4xf32> to tensor<8x4xbf16>
  par.return %y, %p, %c, %both, %g
    : tensor<8x9xbf16>, tensor<3x4xbf16>, tensor<8x4xbf16>, tensor<9x4xf32>, tensor<8x4xbf16>
}
