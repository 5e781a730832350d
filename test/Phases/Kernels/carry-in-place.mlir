// A carried value is stored to its variable where it is computed, if one run does that and no block between reads the
// variable.
// RUN: par-opt %s --par-carry-in-place --split-input-file | FileCheck %s

// CHECK-LABEL: par.program @moved
// CHECK-NOT: @sum
// CHECK: par.store %{{.*}} to @past
// CHECK-NOT: par.block @write
// CHECK: par.entry @predict runs [@forward] microbatches [0]
par.stage @s0 <> ranks [0]
par.program @moved on @s0 ranks [0] {
  par.buffer @past state of "past" : tensor<4xf32>
  par.buffer @sum temp : tensor<4xf32>
  par.block @forward {
    %0 = par.load @past : tensor<4xf32>
    %1 = par.exp %0 : tensor<4xf32>
    par.store %1 to @sum : tensor<4xf32>
  }
  par.block @write {
    %0 = par.load @sum : tensor<4xf32>
    par.store %0 to @past : tensor<4xf32>
  }
  par.entry @predict runs [@forward, @write] microbatches [0, 0]
}

// -----

// The block after it reads the old value.
// CHECK-LABEL: par.program @read
// CHECK: par.store %{{.*}} to @sum
// CHECK: runs [@forward, @between, @write]
par.stage @s0 <> ranks [0]
par.program @read on @s0 ranks [0] {
  par.buffer @past state of "past" : tensor<4xf32>
  par.buffer @sum temp : tensor<4xf32>
  par.buffer @other temp : tensor<4xf32>
  par.block @forward {
    %0 = par.load @past : tensor<4xf32>
    %1 = par.exp %0 : tensor<4xf32>
    par.store %1 to @sum : tensor<4xf32>
  }
  par.block @between {
    %0 = par.load @past : tensor<4xf32>
    par.store %0 to @other : tensor<4xf32>
  }
  par.block @write {
    %0 = par.load @sum : tensor<4xf32>
    par.store %0 to @past : tensor<4xf32>
  }
  par.entry @predict runs [@forward, @between, @write] microbatches [0, 0, 0]
}

// -----

// Two microbatches read the value of the call before.
// CHECK-LABEL: par.program @twice
// CHECK: par.store %{{.*}} to @sum
// CHECK: runs [@forward, @forward, @write]
par.stage @s0 <> ranks [0]
par.program @twice on @s0 ranks [0] {
  par.buffer @past state of "past" : tensor<4xf32>
  par.buffer @sum temp : tensor<4xf32>
  par.block @forward {
    %0 = par.load @past : tensor<4xf32>
    %1 = par.exp %0 : tensor<4xf32>
    par.store %1 to @sum : tensor<4xf32>
  }
  par.block @write {
    %0 = par.load @sum : tensor<4xf32>
    par.store %0 to @past : tensor<4xf32>
  }
  par.entry @predict runs [@forward, @forward, @write] microbatches [0, 1, 1]
}
