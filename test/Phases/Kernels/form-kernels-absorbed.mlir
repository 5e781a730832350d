// A group that absorbs the rounding of a row keeps its own broadcast of the row, even if another group stores one: that
// group reads a result of this one.
// RUN: par-opt %s --par-form-kernels=device=cuda --par-verify-kernels | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-form-kernels{device=cuda}' -o /dev/null

// CHECK-LABEL: par.kernel @transpose.0(%arg0: tensor<2x4x8xbf16>, %arg1: tensor<8xf32>)
// CHECK:         par.convert %arg1 : tensor<8xf32> to tensor<8xbf16>
// CHECK:         par.broadcast_in_dim {{.*}} to tensor<3x2x8x4xbf16>
// CHECK-LABEL: par.block @forward
// CHECK: [[P:%.*]] = par.launch @dot.0
// CHECK: [[U:%.*]]:2 = par.launch @transpose.0([[P]], {{%.*}}) : (tensor<2x4x8xbf16>, tensor<8xf32>) -> (tensor<2x8x4xbf16>, tensor<3x2x4x8xbf16>)
// CHECK: par.launch @broadcast_in_dim.0([[U]]#0)
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<2x4x16xbf16> as !par.dist<tensor<2x4x16xbf16>, @s0, [{}, {}, {}]>
  par.buffer @w input of "w" : tensor<16x8xbf16> as !par.dist<tensor<16x8xbf16>, @s0, [{}, {}]>
  par.buffer @b input of "b" : tensor<8xf32> as !par.dist<tensor<8xf32>, @s0, [{}]>
  par.buffer @q input of "q" : tensor<6x8x4xbf16> as !par.dist<tensor<6x8x4xbf16>, @s0, [{}, {}, {}]>
  par.block @forward {
    %x = par.load @x : tensor<2x4x16xbf16>
    %w = par.load @w : tensor<16x8xbf16>
    %b = par.load @b : tensor<8xf32>
    %p = par.dot %x, %w contracting [2] x [0] : (tensor<2x4x16xbf16>, tensor<16x8xbf16>) -> tensor<2x4x8xbf16>
    %c = par.convert %b : tensor<8xf32> to tensor<8xbf16>
    %r = par.broadcast_in_dim %c dims [2] : tensor<8xbf16> to tensor<2x4x8xbf16>
    %s = par.add %p, %r : tensor<2x4x8xbf16>
    %t = par.transpose %s [0, 2, 1] : tensor<2x4x8xbf16> to tensor<2x8x4xbf16>
    %repeated = par.broadcast_in_dim %t dims [1, 2, 3] : tensor<2x8x4xbf16> to tensor<3x2x8x4xbf16>
    %u = par.transpose %repeated [0, 1, 3, 2] : tensor<3x2x8x4xbf16> to tensor<3x2x4x8xbf16>
    %k = par.reshape %u : tensor<3x2x4x8xbf16> to tensor<6x4x8xbf16>
    %q = par.load @q : tensor<6x8x4xbf16>
    %q32 = par.convert %q : tensor<6x8x4xbf16> to tensor<6x8x4xf32>
    %k32 = par.convert %k : tensor<6x4x8xbf16> to tensor<6x4x8xf32>
    %y = par.dot %q32, %k32 contracting [2] x [1] batching [0] x [0] : (tensor<6x8x4xf32>, tensor<6x4x8xf32>) -> tensor<6x8x8xf32>
    par.fetch %y as "forward.y" : tensor<6x8x8xf32> of !par.dist<tensor<6x8x8xf32>, @s0, [{}, {}, {}]>
    par.fetch %k as "forward.k" : tensor<6x4x8xbf16> of !par.dist<tensor<6x4x8xbf16>, @s0, [{}, {}, {}]>
  }
  par.entry @all runs [@forward] microbatches [0]
}
