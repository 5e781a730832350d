// A gradient that is summed narrow within a microbatch is widened before it is added to those of the others: it is
// accumulated in its variable's element type, under its name.
// RUN: par-opt %s --par-differentiate --par-add-optimizer=kind=sgd --par-slice-microbatches=microbatches=4 | FileCheck %s
// RUN: par-opt %s --par-differentiate --par-add-optimizer=kind=sgd --par-check-phases='passes=par-slice-microbatches{microbatches=1},par-assign-stages,par-form-fragments'

// CHECK: par.step @train
// CHECK: par.loop 4
// CHECK-SAME: labels = ["table", ""]
// CHECK: %[[WIDE:.*]] = par.convert %{{.*}} : tensor<5x2xbf16> to tensor<5x2xf32>
// CHECK: %[[PART:.*]] = par.index_add %[[WIDE]]
// CHECK: par.yield [sum, sum] %[[PART]], %{{.*}} : tensor<4x2xf32>, tensor<f32>
par.stage @s0 <> ranks [0]
par.variable @table parameter : tensor<4x2xf32>
par.step @eval(%x: tensor<8x5x2xbf16>) -> tensor<f32> {
  %table = par.read @table : tensor<4x2xf32>
  %ids = par.constant dense<[0, 1, 1, 3, 2]> : tensor<5xi64>
  %rows = par.gather %table, %ids dim 0 : tensor<4x2xf32>, tensor<5xi64> to tensor<5x2xf32>
  %narrow = par.convert %rows : tensor<5x2xf32> to tensor<5x2xbf16>
  %wide = par.broadcast_in_dim %narrow dims [1, 2] : tensor<5x2xbf16> to tensor<8x5x2xbf16>
  %y = par.multiply %x, %wide : tensor<8x5x2xbf16>
  %z = par.convert %y : tensor<8x5x2xbf16> to tensor<8x5x2xf32>
  %l = par.reduce sum %z dims [0, 1, 2] : tensor<8x5x2xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
