// Heads that one matmul gives, token by token, are read in place, and results are written in the order in which matmuls
// read them: no kernel moves them. A reshape that no strides express together with a transpose belongs to the matmul.
// RUN: par-opt %s --par-form-kernels=device=cuda --par-verify-kernels | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-form-kernels{device=cuda}'

// CHECK-LABEL: par.kernel @dot.0(%{{.*}}: tensor<2x4x16xbf16>, %{{.*}}: tensor<16x48xbf16>) -> tensor<2x4x48xbf16>
// CHECK-LABEL: par.kernel @attention.0(%{{.*}}: tensor<2x4x48xbf16>) -> (tensor<2x4x2x8xbf16>, tensor<2x2x4xf32>)
// CHECK-SAME: "builtin:attention_bf16"
// CHECK-LABEL: par.kernel @dot.1(%{{.*}}: tensor<2x4x2x8xbf16>, %{{.*}}: tensor<16x8xbf16>) -> tensor<2x4x8xf32>
// CHECK-LABEL: par.kernel @attention_grad.0(%{{.*}}: tensor<2x4x2x8xbf16>, %{{.*}}: tensor<2x4x48xbf16>, %{{.*}}: tensor<2x2x4xf32>)
// CHECK-SAME: -> (tensor<2x4x2x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>)
// CHECK-SAME: "builtin:attention_backward_bf16"
// CHECK: par.block @b
// CHECK: %[[QKV:.*]] = par.launch @dot.0
// CHECK-NEXT: %[[O:.*]]:2 = par.launch @attention.0(%[[QKV]])
// CHECK-NEXT: par.launch @dot.1(%[[O]]#0
// CHECK: par.launch @attention_grad.0(%[[O]]#0, %[[QKV]], %[[O]]#1)

// Gradients that are joined token by token are written so.
// CHECK: par.block @joined
// CHECK: %[[G:.*]] = par.launch @attention_grad.1(%{{.*}}, %{{.*}}) : (tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>) -> tensor<2x4x48xbf16>
// CHECK-NEXT: par.fetch %[[G]] as "joined.dqkv"
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<2x4x16xbf16> as !par.dist<tensor<2x4x16xbf16>, @s0, [{}, {}, {}]>
  par.buffer @w input of "w" : tensor<16x48xbf16> as !par.dist<tensor<16x48xbf16>, @s0, [{}, {}]>
  par.buffer @v input of "v" : tensor<16x8xbf16> as !par.dist<tensor<16x8xbf16>, @s0, [{}, {}]>
  par.block @b {
    %x = par.load @x : tensor<2x4x16xbf16>
    %w = par.load @w : tensor<16x48xbf16>
    %v = par.load @v : tensor<16x8xbf16>
    %xf = par.convert %x : tensor<2x4x16xbf16> to tensor<2x4x16xf32>
    %wf = par.convert %w : tensor<16x48xbf16> to tensor<16x48xf32>
    %d = par.dot %xf, %wf contracting [2] x [0] : (tensor<2x4x16xf32>, tensor<16x48xf32>) -> tensor<2x4x48xf32>
    %qkv = par.convert %d : tensor<2x4x48xf32> to tensor<2x4x48xbf16>
    %0 = par.slice %qkv [0, 0, 0] to [2, 4, 16] by [1, 1, 1] : tensor<2x4x48xbf16> to tensor<2x4x16xbf16>
    %1 = par.slice %qkv [0, 0, 16] to [2, 4, 32] by [1, 1, 1] : tensor<2x4x48xbf16> to tensor<2x4x16xbf16>
    %2 = par.reshape %0 : tensor<2x4x16xbf16> to tensor<2x4x2x8xbf16>
    %3 = par.reshape %1 : tensor<2x4x16xbf16> to tensor<2x4x2x8xbf16>
    %q = par.transpose %2 [0, 2, 1, 3] : tensor<2x4x2x8xbf16> to tensor<2x2x4x8xbf16>
    %k = par.transpose %3 [0, 2, 1, 3] : tensor<2x4x2x8xbf16> to tensor<2x2x4x8xbf16>
    %o, %l = par.attention %q, %k, %k scale 1.0
      : (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>) -> (tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>)
    %t = par.transpose %o [0, 2, 1, 3] : tensor<2x2x4x8xbf16> to tensor<2x4x2x8xbf16>
    %r = par.reshape %t : tensor<2x4x2x8xbf16> to tensor<2x4x16xbf16>
    %rf = par.convert %r : tensor<2x4x16xbf16> to tensor<2x4x16xf32>
    %vf = par.convert %v : tensor<16x8xbf16> to tensor<16x8xf32>
    %y = par.dot %rf, %vf contracting [2] x [0] : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    par.fetch %y as "b.y" : tensor<2x4x8xf32> of !par.dist<tensor<2x4x8xf32>, @s0, [{}, {}, {}]>
    %dq, %dk, %dv = par.attention_grad %o, %q, %k, %k, %o, %l scale 1.0
      : (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>)
        -> (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>)
    %dt = par.transpose %dq [0, 2, 1, 3] : tensor<2x2x4x8xbf16> to tensor<2x4x2x8xbf16>
    par.fetch %dt as "b.dq" : tensor<2x4x2x8xbf16> of !par.dist<tensor<2x4x2x8xbf16>, @s0, [{}, {}, {}, {}]>
    par.fetch %dk as "b.dk" : tensor<2x2x4x8xbf16> of !par.dist<tensor<2x2x4x8xbf16>, @s0, [{}, {}, {}, {}]>
    par.fetch %dv as "b.dv" : tensor<2x2x4x8xbf16> of !par.dist<tensor<2x2x4x8xbf16>, @s0, [{}, {}, {}, {}]>
  }  par.buffer @q input of "q" : tensor<2x2x4x8xbf16> as !par.dist<tensor<2x2x4x8xbf16>, @s0, [{}, {}, {}, {}]>
  par.buffer @l input of "l" : tensor<2x2x4xf32> as !par.dist<tensor<2x2x4xf32>, @s0, [{}, {}, {}]>
  par.block @joined {
    %q = par.load @q : tensor<2x2x4x8xbf16>
    %l = par.load @l : tensor<2x2x4xf32>
    %dq, %dk, %dv = par.attention_grad %q, %q, %q, %q, %q, %l scale 1.0
      : (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>)
        -> (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>)
    %0 = par.transpose %dq [0, 2, 1, 3] : tensor<2x2x4x8xbf16> to tensor<2x4x2x8xbf16>
    %1 = par.transpose %dk [0, 2, 1, 3] : tensor<2x2x4x8xbf16> to tensor<2x4x2x8xbf16>
    %2 = par.transpose %dv [0, 2, 1, 3] : tensor<2x2x4x8xbf16> to tensor<2x4x2x8xbf16>
    %3 = par.reshape %0 : tensor<2x4x2x8xbf16> to tensor<2x4x16xbf16>
    %4 = par.reshape %1 : tensor<2x4x2x8xbf16> to tensor<2x4x16xbf16>
    %5 = par.reshape %2 : tensor<2x4x2x8xbf16> to tensor<2x4x16xbf16>
    %6 = par.concat %3, %4, %5 dim 2 : (tensor<2x4x16xbf16>, tensor<2x4x16xbf16>, tensor<2x4x16xbf16>) -> tensor<2x4x48xbf16>
    par.fetch %6 as "joined.dqkv" : tensor<2x4x48xbf16> of !par.dist<tensor<2x4x48xbf16>, @s0, [{}, {}, {}]>
  }
  par.entry @all runs [@b, @joined] microbatches [0, 0]
}
