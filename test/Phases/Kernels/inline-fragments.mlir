// Bodies stand where they were run, equal ops once, unused ones not at all; fragments are gone.
// RUN: par-opt %s --par-inline-fragments --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-NOT: par.fragment
// CHECK: par.block @forward
// CHECK-NEXT: %[[X:.*]] = par.load @x
// CHECK-NEXT: %[[E:.*]] = par.exp %[[X]]
// CHECK-NEXT: par.all_reduce sum %[[E]]
// CHECK-NEXT: par.store
// CHECK-NEXT: par.store %[[E]]
par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.exp %x : tensor<4xf32>
  %1 = par.exp %x : tensor<4xf32>
  %2 = par.all_reduce sum %1 over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
  %3 = par.tanh %x : tensor<4xf32>
  par.return %2, %0, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
par.program @p on @s0 ranks [0, 1] {
  par.buffer @x input of "x" : tensor<4xf32>
  par.buffer @a temp : tensor<4xf32>
  par.buffer @b temp : tensor<4xf32>
  par.block @forward {
    %x = par.load @x : tensor<4xf32>
    %0:3 = par.exec @f(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    par.store %0#0 to @a : tensor<4xf32>
    par.store %0#1 to @b : tensor<4xf32>
  }
  par.entry @train runs [@forward] microbatches [0]
}

// -----

par.stage @s0 <> ranks [0]
par.program @p on @s0 ranks [0] {
  par.block @forward {
    // expected-error @below {{runs @g, which is no local fragment}}
    %0 = par.exec @g() : () -> tensor<4xf32>
  }
}

// -----

par.stage @s0 <> ranks [0]
// expected-note @below {{the fragment has type '() -> tensor<2xf32>'}}
par.fragment @h() -> tensor<2xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.constant dense<1.0> : tensor<2xf32>
  par.return %0 : tensor<2xf32>
}
par.program @p on @s0 ranks [0] {
  par.block @forward {
    // expected-error @below {{does not have its fragment's type}}
    %0 = par.exec @h() : () -> tensor<4xf32>
  }
}

// -----

// Heads of which a rank has one: their transpose moves no element, and is a reshape. One that moves a dim of two stays.
// CHECK: par.block @heads
// CHECK-NEXT: %[[X:.*]] = par.load @x
// CHECK-NEXT: %[[R:.*]] = par.reshape %[[X]] : tensor<4x8x1x2xf32> to tensor<4x1x8x2xf32>
// CHECK-NEXT: %[[T:.*]] = par.transpose %[[X]] [0, 3, 2, 1]
// CHECK-NEXT: par.store %[[R]]
// CHECK-NEXT: par.store %[[T]]
par.stage @s0 <> ranks [0]
par.fragment @move(%x: tensor<4x8x1x2xf32>) -> (tensor<4x1x8x2xf32>, tensor<4x2x1x8xf32>) attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.transpose %x [0, 2, 1, 3] : tensor<4x8x1x2xf32> to tensor<4x1x8x2xf32>
  %1 = par.transpose %x [0, 3, 2, 1] : tensor<4x8x1x2xf32> to tensor<4x2x1x8xf32>
  par.return %0, %1 : tensor<4x1x8x2xf32>, tensor<4x2x1x8xf32>
}
par.program @p on @s0 ranks [0] {
  par.buffer @x input of "x" : tensor<4x8x1x2xf32>
  par.buffer @a temp : tensor<4x1x8x2xf32>
  par.buffer @b temp : tensor<4x2x1x8xf32>
  par.block @heads {
    %x = par.load @x : tensor<4x8x1x2xf32>
    %0:2 = par.exec @move(%x) : (tensor<4x8x1x2xf32>) -> (tensor<4x1x8x2xf32>, tensor<4x2x1x8xf32>)
    par.store %0#0 to @a : tensor<4x1x8x2xf32>
    par.store %0#1 to @b : tensor<4x2x1x8xf32>
  }
  par.entry @train runs [@heads] microbatches [0]
}
