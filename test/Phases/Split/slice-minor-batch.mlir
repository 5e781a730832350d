// A batch that is the minor part of a fused dim (torch.nn.MultiheadAttention's (tokens batch)) is sliced: a microbatch
// has T x B/m rows, and its own rows of values that depend on no input.
// RUN: par-opt %s --par-slice-microbatches=microbatches=4 | FileCheck %s
// RUN: par-opt %s --par-check-phases=passes=par-slice-microbatches{microbatches=4} -o /dev/null

// CHECK: par.loop 4
// CHECK: par.reshape %{{.*}} : tensor<3x2x4xf32> to tensor<6x4xf32>
// CHECK: par.dot {{.*}} -> tensor<6x5xf32>
// CHECK: %[[ROWS:.*]] = par.dynamic_slice {{.*}} tensor<3x8xi64>
// CHECK: par.reshape %[[ROWS]] : tensor<3x2xi64> to tensor<6xi64>
// CHECK: par.reshape %{{.*}} : tensor<6x5xf32> to tensor<3x2x5xf32>
par.variable @weight parameter : tensor<5x4xf32>
par.variable @bias parameter : tensor<5xf32>
par.step @eval(%x: tensor<8x3x4xf32>) -> (tensor<f32>, tensor<5x24xf32>) {
  %w = par.read @weight : tensor<5x4xf32>
  %b = par.read @bias : tensor<5xf32>
  %t = par.transpose %x [1, 0, 2] : tensor<8x3x4xf32> to tensor<3x8x4xf32>
  %f = par.reshape %t : tensor<3x8x4xf32> to tensor<24x4xf32>
  %d = par.dot %f, %w contracting [1] x [1] : (tensor<24x4xf32>, tensor<5x4xf32>) -> tensor<24x5xf32>
  %v = par.broadcast_in_dim %b dims [1] : tensor<5xf32> to tensor<24x5xf32>
  %s = par.add %d, %v : tensor<24x5xf32>
  %i = par.iota dim 0 : tensor<24xi64>
  %n = par.convert %i : tensor<24xi64> to tensor<24xf32>
  %r = par.broadcast_in_dim %n dims [0] : tensor<24xf32> to tensor<24x5xf32>
  %p = par.multiply %s, %r : tensor<24x5xf32>
  %g = par.reshape %p : tensor<24x5xf32> to tensor<3x8x5xf32>
  %l = par.reduce sum %g dims [0, 1, 2] : tensor<3x8x5xf32> to tensor<f32>
  %c = par.collect %p dims 1 : tensor<24x5xf32>
  %o = par.transpose %c [1, 0] : tensor<24x5xf32> to tensor<5x24xf32>
  par.return %l, %o : tensor<f32>, tensor<5x24xf32>
}
