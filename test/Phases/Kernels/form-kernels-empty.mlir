// An empty tensor is seen under another shape by no strides: the kernel reshapes it itself.
// RUN: par-opt %s --par-form-kernels | FileCheck %s
// RUN: par-opt %s --par-form-kernels=device=cuda | FileCheck %s

// CHECK: par.kernel @dot.0(%[[X:.*]]: tensor<2x0x16xbf16>, %[[W:.*]]: tensor<0x16x8xbf16>) -> tensor<2x8xf32> attributes {implementation = "generated"}
// CHECK: par.reshape %[[X]] : tensor<2x0x16xbf16> to tensor<2x16x0xbf16>
// CHECK: par.reshape %[[W]] : tensor<0x16x8xbf16> to tensor<16x0x8xbf16>
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x temp : tensor<2x0x16xbf16>
  par.buffer @w temp : tensor<0x16x8xbf16>
  par.buffer @y temp : tensor<2x8xf32>
  par.block @b {
    %x = par.load @x : tensor<2x0x16xbf16>
    %r = par.reshape %x : tensor<2x0x16xbf16> to tensor<2x16x0xbf16>
    %w = par.load @w : tensor<0x16x8xbf16>
    %v = par.reshape %w : tensor<0x16x8xbf16> to tensor<16x0x8xbf16>
    %y = par.dot %r, %v contracting [1, 2] x [0, 1] : (tensor<2x16x0xbf16>, tensor<16x0x8xbf16>) -> tensor<2x8xf32>
    par.store %y to @y : tensor<2x8xf32>
  }
}
