// An attention without one library call becomes matmuls, which are calls of their own, and the ops between them. One
// with a call stays, even if that computes only f32, and is a kernel of its own. A cpu has one call for f32 attention.
// RUN: par-opt %s --par-expand-matmuls=device=cuda | FileCheck %s
// RUN: par-opt %s --par-expand-matmuls --par-form-kernels --par-verify-kernels | FileCheck %s --check-prefix=CPU
// RUN: par-opt %s --par-expand-matmuls=device=cuda --par-promote-to-f32 --par-form-kernels='device=cuda' --par-verify-kernels \
// RUN:   | FileCheck %s --check-prefix=KERNELS

// KERNELS-DAG: par.kernel @attention.{{[01]}}(%{{.*}}: tensor<2x4x8x16xbf16>, %{{.*}}: tensor<2x1x1x8xf32>) -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>) attributes {implementation = "builtin:attention_bf16"}
// KERNELS-DAG: par.kernel @attention_grad.0({{.*}}tensor<2x4x8xf32>) -> (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>) attributes {implementation = "builtin:attention_backward_bf16"}

// CPU-DAG: par.kernel @attention.{{.*}}(%{{.*}}: tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>) attributes {implementation = "builtin:attention"}
// CPU-DAG: par.kernel @attention_grad.{{.*}} -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) attributes {implementation = "builtin:attention_backward"}

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.buffer @q temp : tensor<2x4x8x16xf32>
  par.buffer @o temp : tensor<2x4x8x16xf32>
  par.buffer @lse temp : tensor<2x4x8xf32>
  // CHECK-LABEL: par.block @forward
  // CHECK-NOT: par.attention
  // CHECK: par.dot %{{.*}}, %{{.*}} contracting [3] x [3] batching [0, 1] x [0, 1]
  // CHECK: par.reduce max
  // CHECK: par.dot %{{.*}}, %{{.*}} contracting [3] x [2] batching [0, 1] x [0, 1]
  // CHECK: par.log
  par.block @forward {
    %q = par.load @q : tensor<2x4x8x16xf32>
    %o, %lse = par.attention %q, %q, %q scale 0.25
        : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    par.store %o to @o : tensor<2x4x8x16xf32>
    par.store %lse to @lse : tensor<2x4x8xf32>
  }
  // The probabilities are recomputed from lse, and divided by their sum.
  // CHECK-LABEL: par.block @backward
  // CHECK-NOT: par.attention
  // CHECK-NOT: par.reduce max
  // CHECK: par.dot
  // CHECK: %[[POWERS:.*]] = par.exp
  // CHECK-NEXT: par.reduce sum %[[POWERS]] dims [3]
  // CHECK-COUNT-4: par.dot
  // CHECK-NOT: par.dot
  par.block @backward {
    %q = par.load @q : tensor<2x4x8x16xf32>
    %o = par.load @o : tensor<2x4x8x16xf32>
    %lse = par.load @lse : tensor<2x4x8xf32>
    %dq, %dk, %dv = par.attention_grad %o, %q, %q, %q, %o, %lse scale 0.25
        : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
        -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>)
    %a = par.add %dq, %dk : tensor<2x4x8x16xf32>
    %b = par.add %a, %dv : tensor<2x4x8x16xf32>
    par.store %b to @o : tensor<2x4x8x16xf32>
  }
  par.buffer @n temp : tensor<2x4x8x16xbf16>
  par.buffer @m temp : tensor<2x8xf32>
  // CHECK-LABEL: par.block @narrow
  // CHECK: par.attention %
  // CHECK: par.attention_grad %
  // CHECK-NOT: par.dot
  // A mask may hide all keys of a query, which lse does not count: backward is taken apart, forward is not. The scale is
  // no f32, but the sum of two.
  // CHECK-LABEL: par.block @masked
  // CHECK: par.attention %
  // CHECK-NOT: par.attention_grad
  // CHECK: par.dot
  // CHECK-DAG: par.constant dense<3.000000e-01> : tensor<2x4x8x8xf32>
  // CHECK-DAG: par.constant dense<-1.19209{{.*}}E-8> : tensor<2x4x8x8xf32>
  // CHECK-COUNT-4: par.dot
  // CHECK-NOT: par.dot
  // Head dims that no tile holds:
  // CHECK-LABEL: par.block @odd
  // CHECK-NOT: par.attention
  // CHECK-COUNT-2: par.dot
  par.block @narrow {
    %n = par.load @n : tensor<2x4x8x16xbf16>
    %o, %lse = par.attention %n, %n, %n scale 0.25 {causal = true}
        : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>) -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>)
    %dq, %dk, %dv = par.attention_grad %n, %n, %n, %n, %o, %lse scale 0.25 {causal = true}
        : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>)
        -> (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>)
    %a = par.add %dq, %dk : tensor<2x4x8x16xbf16>
    %b = par.add %a, %dv : tensor<2x4x8x16xbf16>
    par.store %b to @n : tensor<2x4x8x16xbf16>
  }
  par.block @masked {
    %n = par.load @n : tensor<2x4x8x16xbf16>
    %m = par.load @m : tensor<2x8xf32>
    %mask = par.reshape %m : tensor<2x8xf32> to tensor<2x1x1x8xf32>
    %o, %lse = par.attention %n, %n, %n mask %mask scale 0.3
        : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x1x1x8xf32>) -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>)
    %dq, %dk, %dv = par.attention_grad %n, %n, %n, %n, %o, %lse mask %mask scale 0.3
        : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>, tensor<2x1x1x8xf32>)
        -> (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>)
    %a = par.add %dq, %dk : tensor<2x4x8x16xbf16>
    %b = par.add %a, %dv : tensor<2x4x8x16xbf16>
    par.store %b to @n : tensor<2x4x8x16xbf16>
  }
  par.buffer @twelve temp : tensor<2x4x8x12xbf16>
  par.block @odd {
    %n = par.load @twelve : tensor<2x4x8x12xbf16>
    %o, %lse = par.attention %n, %n, %n scale 0.25
        : (tensor<2x4x8x12xbf16>, tensor<2x4x8x12xbf16>, tensor<2x4x8x12xbf16>) -> (tensor<2x4x8x12xbf16>, tensor<2x4x8xf32>)
    par.store %o to @twelve : tensor<2x4x8x12xbf16>
  }
}
