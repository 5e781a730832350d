// Parameters of 16 bits get masters of f32, and each use reads them rounded; looked-up rows are rounded after the lookup.
// RUN: par-opt %s --par-widen-masters | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-widen-masters'

// CHECK: par.variable @w parameter : tensor<4x2xf32> stored tensor<8xf32> value dense<5.000000e-01> : tensor<4x2xf32> source {dtype = bf16, file = "m.onnx", gzip = false, length = 16 : i64, offset = 8 : i64}
par.variable @w parameter : tensor<4x2xbf16> stored tensor<8xbf16> value dense<0.5> : tensor<4x2xbf16> source {file = "m.onnx", gzip = false, length = 16 : i64, offset = 8 : i64}
// CHECK: par.variable @table parameter : tensor<9x4xf32>
par.variable @table parameter : tensor<9x4xf16>
// Untrained variables and f32 variables stay.
// CHECK: par.variable @frozen frozen : tensor<2xbf16>
par.variable @frozen frozen : tensor<2xbf16>
// CHECK: par.variable @wide parameter : tensor<2xf32>
par.variable @wide parameter : tensor<2xf32>

// CHECK-LABEL: par.step @eval
// CHECK: %[[W:.*]] = par.read @w : tensor<4x2xf32>
// CHECK: %[[TABLE:.*]] = par.read @table : tensor<9x4xf32>
// CHECK: %[[ROWS:.*]] = par.gather %[[TABLE]], %{{.*}} : tensor<9x4xf32>, tensor<8xi64> to tensor<8x4xf32>
// CHECK-NEXT: %[[NARROW:.*]] = par.convert %[[ROWS]] {stage = 1 : i64} : tensor<8x4xf32> to tensor<8x4xf16>
// CHECK-NEXT: par.convert %[[NARROW]] : tensor<8x4xf16> to tensor<8x4xbf16>
// CHECK-NEXT: %[[A:.*]] = par.convert %[[W]] {stage = 1 : i64} : tensor<4x2xf32> to tensor<4x2xbf16>
// CHECK-NEXT: par.dot %{{.*}}, %[[A]]
// Each use has its own convert, so their gradients are summed in f32.
// CHECK: %[[B:.*]] = par.convert %[[W]] : tensor<4x2xf32> to tensor<4x2xbf16>
// CHECK-NEXT: par.convert %[[B]] : tensor<4x2xbf16> to tensor<4x2xf32>
par.step @eval(%ids: tensor<8xi64>) -> (tensor<8x2xbf16>, tensor<4x2xf32>, tensor<2xf32>) {
  %w = par.read @w : tensor<4x2xbf16>
  %table = par.read @table : tensor<9x4xf16>
  %frozen = par.read @frozen : tensor<2xbf16>
  %wide = par.read @wide : tensor<2xf32>
  %rows = par.gather %table, %ids dim 0 {stage = 1 : i64} : tensor<9x4xf16>, tensor<8xi64> to tensor<8x4xf16>
  %x = par.convert %rows : tensor<8x4xf16> to tensor<8x4xbf16>
  %0 = par.dot %x, %w contracting [1] x [0] {stage = 1 : i64} : (tensor<8x4xbf16>, tensor<4x2xbf16>) -> tensor<8x2xbf16>
  %1 = par.broadcast_in_dim %frozen dims [1] : tensor<2xbf16> to tensor<8x2xbf16>
  %2 = par.add %0, %1 : tensor<8x2xbf16>
  %3 = par.convert %w : tensor<4x2xbf16> to tensor<4x2xf32>
  par.return %2, %3, %wide : tensor<8x2xbf16>, tensor<4x2xf32>, tensor<2xf32>
}
