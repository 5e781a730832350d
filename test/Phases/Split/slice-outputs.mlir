// A result with a batch stays sliced: its microbatches are stacked, like those of an input.
// RUN: par-opt %s --par-slice-microbatches=microbatches=4 | FileCheck %s

// CHECK: par.step @predict(%{{.*}}: tensor<4x2x4xf32>) -> (tensor<4x2x4xf32>, tensor<4xf32>)
// CHECK: %[[S:.*]] = par.loop 4
// CHECK: par.yield [sum]
// CHECK: %[[Y:.*]] = par.loop 4
// CHECK: par.yield [stack]
// CHECK-NOT: par.reshape
// CHECK: par.return %[[Y]], %[[S]]
par.step @predict(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %y = par.exp %x : tensor<8x4xf32>
  %s = par.reduce sum %y dims [0] : tensor<8x4xf32> to tensor<4xf32>
  par.return %y, %s : tensor<8x4xf32>, tensor<4xf32>
}
