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
