// A result is written to the buffer to which it is stored; a result in place shares its operand's; old bytes that are
// still needed are copied first.
// RUN: par-opt %s --par-assign-buffers | FileCheck %s

par.stage @s0 <"dp"=2> ranks [0, 1]
par.kernel @add(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32>
    attributes {implementation = "generated", tied = array<i64: 0>} {
  %0 = par.add %a, %b : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.kernel @neg(%a: tensor<4xf32>) -> tensor<4xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.program @stage0 on @s0 ranks [0, 1] {
  par.buffer @w state of "w" : tensor<4xf32>
  par.buffer @x input of "x" by microbatch depth 2 : tensor<4xf32>
  par.buffer @y temp by microbatch depth 2 : tensor<4xf32>
  // CHECK: par.buffer @forward.t0  temp
  // CHECK: par.block @forward
  par.block @forward {
    %x = par.load @x : tensor<4xf32>
    // CHECK: %[[N:.*]] = par.launch @neg
    // CHECK-NEXT: par.store %[[N]] to @forward.t0
    %n = par.launch @neg(%x) : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: %[[R:.*]] = par.all_reduce
    // CHECK-NEXT: par.store %[[R]] to @forward.t0
    %r = par.all_reduce sum %n over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    %w = par.load @w : tensor<4xf32>
    // The weight is updated in place.
    // CHECK: %[[U:.*]] = par.launch @add
    // CHECK-NEXT: par.store %[[U]] to @w
    %u = par.launch @add(%w, %r) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    par.store %u to @w : tensor<4xf32>
    // CHECK: %[[Y:.*]] = par.launch @neg
    // CHECK-NEXT: par.store %[[Y]] to @y
    %y = par.launch @neg(%r) : (tensor<4xf32>) -> tensor<4xf32>
    par.store %y to @y : tensor<4xf32>
  }
  // CHECK: par.block @keep
  par.block @keep {
    // The input's old bytes are needed again: they are copied before @add works in place.
    // CHECK: %[[X:.*]] = par.load @x
    // CHECK: par.store %[[X]] to @keep.t0
    // CHECK: %[[A:.*]] = par.launch @add
    // CHECK-NEXT: par.store %[[A]] to @keep.t0
    %x = par.load @x : tensor<4xf32>
    %a = par.launch @add(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    par.send %a to [2, 3] tag 1 : tensor<4xf32>
  }
  // An in-place sum that is then reduced stays in its buffer: no copy, no scratch.
  // CHECK: par.block @sum
  // CHECK-NEXT: par.load @y
  // CHECK-NEXT: par.load @x
  // CHECK-NEXT: par.launch @add
  // CHECK-NEXT: par.store %{{.*}} to @y
  // CHECK-NEXT: par.load @y
  // CHECK-NEXT: par.all_reduce
  // CHECK-NEXT: par.store %{{.*}} to @y
  // CHECK-NEXT: }
  par.block @sum {
    %y = par.load @y : tensor<4xf32>
    %x = par.load @x : tensor<4xf32>
    %s = par.launch @add(%y, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %r = par.all_reduce sum %s over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    par.store %r to @y : tensor<4xf32>
  }
  par.entry @train runs [@forward, @keep, @forward, @keep] microbatches [0, 0, 1, 1]
}
