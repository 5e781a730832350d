// A kernel that only reshapes is no copy: its result is a load of the same buffer under the other shape, and the kernel
// is erased.
// RUN: par-opt %s --par-assign-buffers | FileCheck %s
// RUN: par-opt %s --par-assign-buffers --par-pack-memory --par-verify-memory -o /dev/null

// CHECK-NOT: par.kernel @seen
// CHECK-NOT: par.kernel @flat
par.stage @s0 <"tp"=2> ranks [0, 1]
par.kernel @neg(%a: tensor<4x2xf32>) -> tensor<4x2xf32> attributes {implementation = "generated"} {
  %0 = par.negate %a : tensor<4x2xf32>
  par.return %0 : tensor<4x2xf32>
}
par.kernel @add(%a: tensor<8xf32>, %b: tensor<4x2xf32>) -> tensor<8xf32> attributes {implementation = "generated", tied = array<i64: 0>} {
  %0 = par.transpose %b [1, 0] : tensor<4x2xf32> to tensor<2x4xf32>
  %1 = par.reshape %0 : tensor<2x4xf32> to tensor<8xf32>
  %2 = par.add %a, %1 : tensor<8xf32>
  par.return %2 : tensor<8xf32>
}
par.kernel @seen(%a: tensor<4x2xf32>) -> tensor<1x4x2xf32> attributes {implementation = "generated"} {
  %0 = par.reshape %a : tensor<4x2xf32> to tensor<1x4x2xf32>
  par.return %0 : tensor<1x4x2xf32>
}
par.kernel @flat(%a: tensor<4x2xf32>) -> tensor<8xf32> attributes {implementation = "generated"} {
  %0 = par.reshape %a : tensor<4x2xf32> to tensor<8xf32>
  par.return %0 : tensor<8xf32>
}
par.program @stage0 on @s0 ranks [0, 1] {
  par.buffer @x input of "x" : tensor<4x2xf32>
  par.buffer @kept temp : tensor<8xf32>
  par.buffer @loss temp : tensor<2x4x2xf32>
  par.buffer @more temp : tensor<8xf32>
  // A result that a collective takes under another shape.
  // CHECK: par.block @gather
  // CHECK: %[[N:.*]] = par.launch @neg
  // CHECK-NEXT: par.store %[[N]] to @gather.t0
  // CHECK: %[[SEEN:.*]] = par.load @gather.t0 : tensor<1x4x2xf32>
  // CHECK: par.all_gather %[[SEEN]]
  par.block @gather {
    %x = par.load @x : tensor<4x2xf32>
    %n = par.launch @neg(%x) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %s = par.launch @seen(%n) : (tensor<4x2xf32>) -> tensor<1x4x2xf32>
    %g = par.all_gather %s dims [0] over ["tp"] : (tensor<1x4x2xf32>) -> tensor<2x4x2xf32>
    par.store %g to @loss : tensor<2x4x2xf32>
  }
  // One that is kept under another shape is made where it is kept, without a copy.
  // CHECK: par.block @keep
  // CHECK: %[[N:.*]] = par.launch @neg
  // CHECK-NEXT: par.store %[[N]] to @kept : tensor<4x2xf32>
  // CHECK-NOT: par.store
  // CHECK: par.block @change
  par.block @keep {
    %x = par.load @x : tensor<4x2xf32>
    %n = par.launch @neg(%x) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %f = par.launch @flat(%n) : (tensor<4x2xf32>) -> tensor<8xf32>
    par.store %f to @kept : tensor<8xf32>
  }
  // An in-place kernel that also reads its operand under another shape, elsewhere, gets a copy.
  // CHECK: %[[N:.*]] = par.launch @neg
  // CHECK-NEXT: par.store %[[N]] to @more : tensor<4x2xf32>
  // CHECK: par.store %{{.*}} to @change.t0 : tensor<8xf32>
  // CHECK: par.launch @add
  // CHECK-NEXT: par.store %{{.*}} to @change.t0 : tensor<8xf32>
  // CHECK: par.store %{{.*}} to @more : tensor<8xf32>
  par.block @change {
    %x = par.load @x : tensor<4x2xf32>
    %n = par.launch @neg(%x) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %f = par.launch @flat(%n) : (tensor<4x2xf32>) -> tensor<8xf32>
    %a = par.launch @add(%f, %n) : (tensor<8xf32>, tensor<4x2xf32>) -> tensor<8xf32>
    par.store %a to @more : tensor<8xf32>
  }
  par.entry @train runs [@gather, @keep, @change] microbatches [0, 0, 0]
}
