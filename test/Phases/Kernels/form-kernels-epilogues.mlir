// On a GPU ops after a matmul become its library call's epilogue, if the library has it: GELU by tanh with a row added
// before and the sum stored, too, and its gradient. Epilogues are recognised by values, not by ops.
// RUN: par-opt %s --par-form-kernels=device=cuda --par-verify-kernels | FileCheck %s
// RUN: par-opt %s --par-form-kernels | FileCheck %s --check-prefix=CPU
// RUN: par-opt %s --par-check-phases='passes=par-form-kernels{device=cuda}'

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<2x4x8xf32> as !par.dist<tensor<2x4x8xf32>, @s0, [{}, {}, {}]>
  par.buffer @w input of "w" : tensor<8x16xf32> as !par.dist<tensor<8x16xf32>, @s0, [{}, {}]>
  par.buffer @b input of "b" : tensor<16xf32> as !par.dist<tensor<16xf32>, @s0, [{}]>
  par.buffer @z input of "z" : tensor<2x4x16xf32> as !par.dist<tensor<2x4x16xf32>, @s0, [{}, {}, {}]>
  par.buffer @v input of "v" : tensor<16x8xf32> as !par.dist<tensor<16x8xf32>, @s0, [{}, {}]>
  par.buffer @odd input of "odd" : tensor<8x12xf32> as !par.dist<tensor<8x12xf32>, @s0, [{}, {}]>

  par.buffer @wq input of "wq" : tensor<8x2x8xf32> as !par.dist<tensor<8x2x8xf32>, @s0, [{}, {}, {}]>
  par.buffer @bq input of "bq" : tensor<2x8xf32> as !par.dist<tensor<2x8xf32>, @s0, [{}, {}]>

  // CPU-LABEL: par.block @forward
  // CPU-COUNT-2: par.launch
  // CHECK-LABEL: par.block @forward
  // CHECK: par.launch @gelu.{{[0-9]+}}({{.*}}) : (tensor<2x4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<2x4x16xf32>
  // CHECK-NOT: par.launch
  // CHECK: par.fetch
  par.block @forward {
    %x = par.load @x : tensor<2x4x8xf32>
    %w = par.load @w : tensor<8x16xf32>
    %b = par.load @b : tensor<16xf32>
    %p = par.dot %x, %w contracting [2] x [0] : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %r = par.broadcast_in_dim %b dims [2] : tensor<16xf32> to tensor<2x4x16xf32>
    %s = par.add %p, %r : tensor<2x4x16xf32>
    %y = par.gelu %s {tanh = true} : tensor<2x4x16xf32>
    par.fetch %y as "forward.y" : tensor<2x4x16xf32> of !par.dist<tensor<2x4x16xf32>, @s0, [{}, {}, {}]>
  }

  // The sum is kept for the backward part; GELU stands as exporters write it.
  // CHECK-LABEL: par.block @kept
  // CHECK: par.launch @{{.*}} -> (tensor<2x4x16xf32>, tensor<2x4x16xf32>)
  // CHECK-NOT: par.launch
  // CHECK: par.fetch
  par.block @kept {
    %half = par.constant dense<5.000000e-01> : tensor<2x4x16xf32>
    %cubic = par.constant dense<4.471500e-02> : tensor<2x4x16xf32>
    %root = par.constant dense<0.797884583> : tensor<2x4x16xf32>
    %one = par.constant dense<1.000000e+00> : tensor<2x4x16xf32>
    %x = par.load @x : tensor<2x4x8xf32>
    %w = par.load @w : tensor<8x16xf32>
    %b = par.load @b : tensor<16xf32>
    %p = par.dot %x, %w contracting [2] x [0] : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %r = par.broadcast_in_dim %b dims [2] : tensor<16xf32> to tensor<2x4x16xf32>
    %s = par.add %r, %p : tensor<2x4x16xf32>
    %0 = par.multiply %s, %s : tensor<2x4x16xf32>
    %1 = par.multiply %0, %s : tensor<2x4x16xf32>
    %2 = par.multiply %1, %cubic : tensor<2x4x16xf32>
    %3 = par.add %s, %2 : tensor<2x4x16xf32>
    %4 = par.multiply %3, %root : tensor<2x4x16xf32>
    %5 = par.tanh %4 : tensor<2x4x16xf32>
    %6 = par.add %5, %one : tensor<2x4x16xf32>
    %7 = par.multiply %s, %half : tensor<2x4x16xf32>
    %8 = par.multiply %7, %6 : tensor<2x4x16xf32>
    par.fetch %s as "kept.z" : tensor<2x4x16xf32> of !par.dist<tensor<2x4x16xf32>, @s0, [{}, {}, {}]>
    par.fetch %8 as "kept.y" : tensor<2x4x16xf32> of !par.dist<tensor<2x4x16xf32>, @s0, [{}, {}, {}]>
  }

  // CHECK-LABEL: par.block @backward
  // CHECK: par.launch @{{.*}} : (tensor<2x4x8xf32>, tensor<16x8xf32>, tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  // CHECK-NOT: par.launch
  // CHECK: par.fetch
  par.block @backward {
    %ct = par.load @x : tensor<2x4x8xf32>
    %v = par.load @v : tensor<16x8xf32>
    %z = par.load @z : tensor<2x4x16xf32>
    %p = par.dot %ct, %v contracting [2] x [1] : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
    %y = par.gelu_grad %p, %z {tanh = true} : tensor<2x4x16xf32>
    par.fetch %y as "backward.y" : tensor<2x4x16xf32> of !par.dist<tensor<2x4x16xf32>, @s0, [{}, {}, {}]>
  }

  // Only a row, and one of several dims, which are one dim for the library. In bf16 it is rounded before.
  // CHECK-LABEL: par.block @row
  // CHECK: par.launch @add.{{[0-9]+}}({{.*}}) : (tensor<2x4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<2x4x16xf32>
  // CHECK-NOT: par.launch
  // CHECK: par.fetch
  par.block @row {
    %x = par.load @x : tensor<2x4x8xf32>
    %w = par.load @w : tensor<8x16xf32>
    %b = par.load @b : tensor<16xf32>
    %p = par.dot %x, %w contracting [2] x [0] : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %r = par.broadcast_in_dim %b dims [2] : tensor<16xf32> to tensor<2x4x16xf32>
    %y = par.add %p, %r : tensor<2x4x16xf32>
    par.fetch %y as "row.y" : tensor<2x4x16xf32> of !par.dist<tensor<2x4x16xf32>, @s0, [{}, {}, {}]>
  }
  // CHECK-LABEL: par.block @row_of_dims
  // CHECK: par.launch @convert.{{[0-9]+}}({{.*}}) : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
  // CHECK: par.launch @convert.{{[0-9]+}}({{.*}}) : (tensor<8x2x8xf32>) -> tensor<8x2x8xbf16>
  // CHECK: par.launch @convert.{{[0-9]+}}({{.*}}) : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  // CHECK: par.launch @{{.*}} : (tensor<2x4x8xbf16>, tensor<8x2x8xbf16>, tensor<2x8xbf16>) -> tensor<2x4x2x8xbf16>
  // CHECK-NOT: par.launch
  // CHECK: par.fetch
  par.block @row_of_dims {
    %x32 = par.load @x : tensor<2x4x8xf32>
    %w32 = par.load @wq : tensor<8x2x8xf32>
    %b = par.load @bq : tensor<2x8xf32>
    %x16 = par.convert %x32 : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
    %w16 = par.convert %w32 : tensor<8x2x8xf32> to tensor<8x2x8xbf16>
    %x = par.convert %x16 : tensor<2x4x8xbf16> to tensor<2x4x8xf32>
    %w = par.convert %w16 : tensor<8x2x8xbf16> to tensor<8x2x8xf32>
    %p = par.dot %x, %w contracting [2] x [0] : (tensor<2x4x8xf32>, tensor<8x2x8xf32>) -> tensor<2x4x2x8xf32>
    %p16 = par.convert %p : tensor<2x4x2x8xf32> to tensor<2x4x2x8xbf16>
    %p32 = par.convert %p16 : tensor<2x4x2x8xbf16> to tensor<2x4x2x8xf32>
    %r = par.broadcast_in_dim %b dims [2, 3] : tensor<2x8xf32> to tensor<2x4x2x8xf32>
    %r16 = par.convert %r : tensor<2x4x2x8xf32> to tensor<2x4x2x8xbf16>
    %r32 = par.convert %r16 : tensor<2x4x2x8xbf16> to tensor<2x4x2x8xf32>
    %s = par.add %p32, %r32 : tensor<2x4x2x8xf32>
    %s16 = par.convert %s : tensor<2x4x2x8xf32> to tensor<2x4x2x8xbf16>
    par.fetch %s16 as "row_of_dims.q" : tensor<2x4x2x8xbf16> of !par.dist<tensor<2x4x2x8xbf16>, @s0, [{}, {}, {}, {}]>
  }
  // If more is added, one kernel reads the matmul in any case, and rounds the row.
  // CHECK-LABEL: par.block @row_and_more
  // CHECK-COUNT-4: par.launch
  // CHECK-NOT: par.launch
  // CHECK: par.fetch
  par.block @row_and_more {
    %x32 = par.load @x : tensor<2x4x8xf32>
    %w32 = par.load @w : tensor<8x16xf32>
    %b = par.load @b : tensor<16xf32>
    %z = par.load @z : tensor<2x4x16xf32>
    %x16 = par.convert %x32 : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
    %w16 = par.convert %w32 : tensor<8x16xf32> to tensor<8x16xbf16>
    %x = par.convert %x16 : tensor<2x4x8xbf16> to tensor<2x4x8xf32>
    %w = par.convert %w16 : tensor<8x16xbf16> to tensor<8x16xf32>
    %p = par.dot %x, %w contracting [2] x [0] : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %p16 = par.convert %p : tensor<2x4x16xf32> to tensor<2x4x16xbf16>
    %p32 = par.convert %p16 : tensor<2x4x16xbf16> to tensor<2x4x16xf32>
    %r = par.broadcast_in_dim %b dims [2] : tensor<16xf32> to tensor<2x4x16xf32>
    %r16 = par.convert %r : tensor<2x4x16xf32> to tensor<2x4x16xbf16>
    %r32 = par.convert %r16 : tensor<2x4x16xbf16> to tensor<2x4x16xf32>
    %s = par.add %p32, %r32 : tensor<2x4x16xf32>
    %y = par.add %s, %z : tensor<2x4x16xf32>
    par.fetch %y as "row_and_more.y" : tensor<2x4x16xf32> of !par.dist<tensor<2x4x16xf32>, @s0, [{}, {}, {}]>
  }

  // GELU itself is another function.
  // CHECK-LABEL: par.block @exact
  // CHECK-COUNT-2: par.launch
  par.block @exact {
    %x = par.load @x : tensor<2x4x8xf32>
    %w = par.load @w : tensor<8x16xf32>
    %p = par.dot %x, %w contracting [2] x [0] : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %y = par.gelu %p : tensor<2x4x16xf32>
    par.fetch %y as "exact.y" : tensor<2x4x16xf32> of !par.dist<tensor<2x4x16xf32>, @s0, [{}, {}, {}]>
  }

  // Rows that are not whole steps of 8 elements are nothing for the library.
  // CHECK-LABEL: par.block @short
  // CHECK-COUNT-2: par.launch
  par.block @short {
    %x = par.load @x : tensor<2x4x8xf32>
    %w = par.load @odd : tensor<8x12xf32>
    %p = par.dot %x, %w contracting [2] x [0] : (tensor<2x4x8xf32>, tensor<8x12xf32>) -> tensor<2x4x12xf32>
    %y = par.gelu %p {tanh = true} : tensor<2x4x12xf32>
    par.fetch %y as "short.u" : tensor<2x4x12xf32> of !par.dist<tensor<2x4x12xf32>, @s0, [{}, {}, {}]>
  }

  // Nor is a matmul with other users.
  // CHECK-LABEL: par.block @shared
  // CHECK-COUNT-2: par.launch
  par.block @shared {
    %x = par.load @x : tensor<2x4x8xf32>
    %w = par.load @w : tensor<8x16xf32>
    %p = par.dot %x, %w contracting [2] x [0] : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %y = par.gelu %p {tanh = true} : tensor<2x4x16xf32>
    par.fetch %p as "shared.z" : tensor<2x4x16xf32> of !par.dist<tensor<2x4x16xf32>, @s0, [{}, {}, {}]>
    par.fetch %y as "shared.y" : tensor<2x4x16xf32> of !par.dist<tensor<2x4x16xf32>, @s0, [{}, {}, {}]>
  }

  // A piecewise function may differ between samples: none is the library's.
  // CHECK-LABEL: par.block @clipped
  // CHECK-COUNT-2: par.launch
  par.block @clipped {
    %most = par.constant dense<1.000000e+01> : tensor<2x4x16xf32>
    %x = par.load @x : tensor<2x4x8xf32>
    %w = par.load @w : tensor<8x16xf32>
    %p = par.dot %x, %w contracting [2] x [0] : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %g = par.gelu %p {tanh = true} : tensor<2x4x16xf32>
    %y = par.minimum %g, %most : tensor<2x4x16xf32>
    par.fetch %y as "clipped.y" : tensor<2x4x16xf32> of !par.dist<tensor<2x4x16xf32>, @s0, [{}, {}, {}]>
  }
  par.entry @all runs [@forward, @kept, @backward, @row, @row_of_dims, @row_and_more, @exact, @short, @shared, @clipped] microbatches [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}
