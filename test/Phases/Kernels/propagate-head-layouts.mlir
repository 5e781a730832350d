// RUN: par-opt %s -par-propagate-head-layouts | FileCheck %s

// Queries and keys come from one value, which is kept once; the result is kept in the order in which the forward part reads it.
// CHECK-LABEL: par.program @p
par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  // CHECK: par.buffer @q temp : tensor<2x4x2x16xbf16>
  // CHECK-NOT: par.buffer @k
  // CHECK: par.buffer @o temp : tensor<2x4x2x8xbf16>
  par.buffer @q temp : tensor<2x2x4x8xbf16>
  par.buffer @k temp : tensor<2x2x4x8xbf16>
  par.buffer @o temp : tensor<2x2x4x8xbf16>
  // The same under another shape has no buffer of its own.
  // CHECK-NOT: par.buffer @flat
  par.buffer @flat temp : tensor<2x4x16xbf16>
  par.buffer @x input of "x" : tensor<2x4x2x16xbf16>
  par.buffer @g temp : tensor<2x4x16xbf16>
  par.buffer @y temp : tensor<2x4x2x8xbf16>
  par.buffer @z temp : tensor<2x2x4x8xbf16>
  // CHECK: par.block @forward
  par.block @forward {
    // CHECK: %[[X:.*]] = par.load @x
    %x = par.load @x : tensor<2x4x2x16xbf16>
    %0 = par.slice %x [0, 0, 0, 0] to [2, 4, 2, 8] by [1, 1, 1, 1] : tensor<2x4x2x16xbf16> to tensor<2x4x2x8xbf16>
    %1 = par.slice %x [0, 0, 0, 8] to [2, 4, 2, 16] by [1, 1, 1, 1] : tensor<2x4x2x16xbf16> to tensor<2x4x2x8xbf16>
    %q = par.transpose %0 [0, 2, 1, 3] : tensor<2x4x2x8xbf16> to tensor<2x2x4x8xbf16>
    %k = par.transpose %1 [0, 2, 1, 3] : tensor<2x4x2x8xbf16> to tensor<2x2x4x8xbf16>
    // CHECK: %[[O:.*]], %{{.*}} = par.attention
    // CHECK: %[[T:.*]] = par.transpose %[[O]] [0, 2, 1, 3]
    %o, %l = par.attention %q, %k, %k scale 1.0
      : (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>) -> (tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>)
    // CHECK: par.store %[[X]] to @q : tensor<2x4x2x16xbf16>
    // CHECK-NOT: to @k
    // CHECK: par.store %[[T]] to @o : tensor<2x4x2x8xbf16>
    // CHECK: par.store %[[T]] to @y
    par.store %q to @q : tensor<2x2x4x8xbf16>
    par.store %k to @k : tensor<2x2x4x8xbf16>
    par.store %o to @o : tensor<2x2x4x8xbf16>
    %t = par.transpose %o [0, 2, 1, 3] : tensor<2x2x4x8xbf16> to tensor<2x4x2x8xbf16>
    par.store %t to @y : tensor<2x4x2x8xbf16>
    %f = par.reshape %t : tensor<2x4x2x8xbf16> to tensor<2x4x16xbf16>
    par.store %f to @flat : tensor<2x4x16xbf16>
  }
  // CHECK: par.block @backward
  par.block @backward {
    // CHECK: %[[LQ:.*]] = par.load @q : tensor<2x4x2x16xbf16>
    // CHECK: %[[SQ:.*]] = par.slice %[[LQ]] [0, 0, 0, 0]
    // CHECK: %[[Q:.*]] = par.transpose %[[SQ]] [0, 2, 1, 3]
    // CHECK: %[[LK:.*]] = par.load @q : tensor<2x4x2x16xbf16>
    // CHECK: %[[SK:.*]] = par.slice %[[LK]] [0, 0, 0, 8]
    // CHECK: %[[K:.*]] = par.transpose %[[SK]] [0, 2, 1, 3]
    // CHECK: %[[LO:.*]] = par.load @o : tensor<2x4x2x8xbf16>
    // CHECK: %[[B:.*]] = par.transpose %[[LO]] [0, 2, 1, 3]
    %q = par.load @q : tensor<2x2x4x8xbf16>
    %k = par.load @k : tensor<2x2x4x8xbf16>
    %o = par.load @o : tensor<2x2x4x8xbf16>
    %lse = par.constant dense<0.0> : tensor<2x2x4xf32>
    // CHECK: par.attention_grad %[[B]], %[[Q]], %[[K]], %[[K]], %[[B]]
    %dq, %dk, %dv = par.attention_grad %o, %q, %k, %k, %o, %lse scale 1.0
      : (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>)
        -> (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>)
    par.store %dq to @z : tensor<2x2x4x8xbf16>
    // CHECK: %[[LF:.*]] = par.load @o : tensor<2x4x2x8xbf16>
    // CHECK: %[[F:.*]] = par.reshape %[[LF]]
    // CHECK: par.store %[[F]] to @g
    %f = par.load @flat : tensor<2x4x16xbf16>
    par.store %f to @g : tensor<2x4x16xbf16>
    // A value that is read as forward reads it is stored in that layout.
    // CHECK: par.store %[[LO]] to @y
    %t = par.transpose %o [0, 2, 1, 3] : tensor<2x2x4x8xbf16> to tensor<2x4x2x8xbf16>
    par.store %t to @y : tensor<2x4x2x8xbf16>
  }
}

// Blocks of several microbatches store alike.
// CHECK-LABEL: par.program @microbatches
par.program @microbatches on @s0 ranks [0] {
  // CHECK: par.buffer @q2 temp by microbatch depth 2 : tensor<2x4x2x16xbf16>
  // CHECK-NOT: par.buffer @k2
  par.buffer @q2 temp by microbatch depth 2 : tensor<2x2x4x8xbf16>
  par.buffer @k2 temp by microbatch depth 2 : tensor<2x2x4x8xbf16>
  par.buffer @x2 input of "x" : tensor<2x4x2x16xbf16>
  par.buffer @y2 temp : tensor<2x2x4x8xbf16>
  // CHECK-COUNT-2: par.store %{{.*}} to @q2 : tensor<2x4x2x16xbf16>
  par.block @first {
    %x = par.load @x2 : tensor<2x4x2x16xbf16>
    %0 = par.slice %x [0, 0, 0, 0] to [2, 4, 2, 8] by [1, 1, 1, 1] : tensor<2x4x2x16xbf16> to tensor<2x4x2x8xbf16>
    %1 = par.slice %x [0, 0, 0, 8] to [2, 4, 2, 16] by [1, 1, 1, 1] : tensor<2x4x2x16xbf16> to tensor<2x4x2x8xbf16>
    %q = par.transpose %0 [0, 2, 1, 3] : tensor<2x4x2x8xbf16> to tensor<2x2x4x8xbf16>
    %k = par.transpose %1 [0, 2, 1, 3] : tensor<2x4x2x8xbf16> to tensor<2x2x4x8xbf16>
    %o, %l = par.attention %q, %k, %k scale 1.0
      : (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>) -> (tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>)
    par.store %q to @q2 : tensor<2x2x4x8xbf16>
    par.store %k to @k2 : tensor<2x2x4x8xbf16>
    par.store %o to @y2 : tensor<2x2x4x8xbf16>
  }
  par.block @others {
    %x = par.load @x2 : tensor<2x4x2x16xbf16>
    %0 = par.slice %x [0, 0, 0, 0] to [2, 4, 2, 8] by [1, 1, 1, 1] : tensor<2x4x2x16xbf16> to tensor<2x4x2x8xbf16>
    %1 = par.slice %x [0, 0, 0, 8] to [2, 4, 2, 16] by [1, 1, 1, 1] : tensor<2x4x2x16xbf16> to tensor<2x4x2x8xbf16>
    %q = par.transpose %0 [0, 2, 1, 3] : tensor<2x4x2x8xbf16> to tensor<2x2x4x8xbf16>
    %k = par.transpose %1 [0, 2, 1, 3] : tensor<2x4x2x8xbf16> to tensor<2x2x4x8xbf16>
    %o, %l = par.attention %q, %k, %k scale 1.0
      : (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>) -> (tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>)
    par.store %q to @q2 : tensor<2x2x4x8xbf16>
    par.store %k to @k2 : tensor<2x2x4x8xbf16>
    par.store %o to @y2 : tensor<2x2x4x8xbf16>
  }
  // CHECK: par.block @backward2
  par.block @backward2 {
    // CHECK-COUNT-2: par.load @q2 : tensor<2x4x2x16xbf16>
    // CHECK: par.attention_grad
    %q = par.load @q2 : tensor<2x2x4x8xbf16>
    %k = par.load @k2 : tensor<2x2x4x8xbf16>
    %lse = par.constant dense<0.0> : tensor<2x2x4xf32>
    %dq, %dk, %dv = par.attention_grad %q, %q, %k, %k, %q, %lse scale 1.0
      : (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4xf32>)
        -> (tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>, tensor<2x2x4x8xbf16>)
    par.store %dq to @y2 : tensor<2x2x4x8xbf16>
  }
}
