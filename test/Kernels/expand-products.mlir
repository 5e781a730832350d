// What no library computes as a whole is products, which are calls of their own, and the ops between them.
// RUN: par-opt %s --par-expand-products | FileCheck %s

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
  // The probabilities are computed anew from lse.
  // CHECK-LABEL: par.block @backward
  // CHECK-NOT: par.attention
  // CHECK-NOT: par.reduce max
  // CHECK-COUNT-5: par.dot
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
}
