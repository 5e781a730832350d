// Sums over the batch become results of the loop; sums that depend only on data come from a loop before it.
// RUN: par-opt %S/Inputs/two-stages.mlir --par-slice-microbatches=microbatches=4 | FileCheck %s
// RUN: par-opt %s --par-slice-microbatches=microbatches=4 --split-input-file --verify-diagnostics

// CHECK: par.step @train(%[[X:.*]]: tensor<4x4x4xf32>, %[[Y:.*]]: tensor<4x4xi64>)
// CHECK: %[[N:.*]] = par.loop 4
// CHECK-NOT: par.dot
// CHECK: par.yield [sum]
// CHECK: par.loop 4
// CHECK-SAME: labels = ["", "w1", "w2"]
// CHECK: par.dot {{.*}} (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: par.divide %{{.*}}, %[[N]]
// CHECK: par.yield [sum, sum, sum]
// CHECK: par.gradient
// CHECK: par.sgd

par.step @eval(%x: tensor<8x4xf32>) -> tensor<f32> {
  %w = par.read @w : tensor<4xf32>
  %wb = par.broadcast_in_dim %w dims [1] : tensor<4xf32> to tensor<8x4xf32>
  %y = par.multiply %x, %wb : tensor<8x4xf32>
  %s = par.reduce sum %y dims [0] : tensor<8x4xf32> to tensor<4xf32>
  %b = par.broadcast_in_dim %s dims [1] : tensor<4xf32> to tensor<8x4xf32>
  %c = par.subtract %y, %b : tensor<8x4xf32>
  // A first pass makes the first sum; the second one depends on that.
  %s2 = par.reduce sum %c dims [0] : tensor<8x4xf32> to tensor<4xf32>
  // expected-note @below {{this is known only when all microbatches have run}}
  %b2 = par.broadcast_in_dim %s2 dims [1] : tensor<4xf32> to tensor<8x4xf32>
  // expected-error @below {{couples microbatches: it needs slices of the batch together with a sum over the whole batch; say batch.microbatches: 1, or make the loss a sum over samples (statistics of each sequence)}}
  %d = par.subtract %c, %b2 : tensor<8x4xf32>
  %l = par.reduce sum %d dims [0, 1] : tensor<8x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
par.variable @w parameter : tensor<4xf32>

// -----

par.step @eval(%x: tensor<8x4xf32>) -> tensor<f32> {
  // expected-error @below {{couples microbatches: it works along the batch in a way that cannot be cut into 4; say batch.microbatches: 1}}
  %s = par.softmax %x dim 0 : tensor<8x4xf32>
  %l = par.reduce sum %s dims [0, 1] : tensor<8x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}

// -----

// Rows of all samples, flattened as index_add wants them.
par.step @eval(%x: tensor<8x4xf32>) -> tensor<f32> {
  %rows = par.constant dense<[1, 0, 7]> : tensor<3xi64>
  // expected-error @below {{couples microbatches: its indices count rows of the whole batch; index the rows of each sample (x[:, i] in place of x.flatten(0, 1)[j]), or say batch.microbatches: 1}}
  %g = par.gather %x, %rows dim 0 : tensor<8x4xf32>, tensor<3xi64> to tensor<3x4xf32>
  %l = par.reduce sum %g dims [0, 1] : tensor<3x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}

// -----

par.step @eval(%x: tensor<6x4xf32>) -> tensor<f32> {
  // expected-error @below {{the batch of 6 does not divide into 4 microbatches}}
  %l = par.reduce sum %x dims [0, 1] : tensor<6x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}

// -----

// The rows become the minor part of the flat dim, which is then taken apart between them.
par.step @eval(%x: tensor<8x3xf32>) -> tensor<f32> {
  %t = par.transpose %x [1, 0] : tensor<8x3xf32> to tensor<3x8xf32>
  %f = par.reshape %t : tensor<3x8xf32> to tensor<24xf32>
  // expected-error @below {{couples microbatches: the batch is the minor part of dim 0 of its operand, which it takes apart in another way; say batch.microbatches: 1}}
  %g = par.reshape %f : tensor<24xf32> to tensor<2x12xf32>
  %l = par.reduce sum %g dims [0, 1] : tensor<2x12xf32> to tensor<f32>
  par.return %l : tensor<f32>
}

// -----

par.step @eval(%x: tensor<8x8xf32>) -> tensor<f32> {
  %t = par.transpose %x [1, 0] : tensor<8x8xf32> to tensor<8x8xf32>
  // expected-error @below {{couples microbatches: the batch is dim 1 of one operand and elsewhere in another; say batch.microbatches: 1}}
  %s = par.add %x, %t : tensor<8x8xf32>
  %l = par.reduce sum %s dims [0, 1] : tensor<8x8xf32> to tensor<f32>
  par.return %l : tensor<f32>
}

// -----

// expected-error @below {{input 0 has its batch in dim 1; only dim 0 is supported yet}}
par.step @eval(%x: tensor<4x8xf32>) -> tensor<f32> attributes {inputs = ["x"], batch_dims = array<i64: 1>} {
  %l = par.reduce sum %x dims [0, 1] : tensor<4x8xf32> to tensor<f32>
  par.return %l : tensor<f32>
}

// -----

par.step @eval(%x: tensor<1x4xf32>) -> tensor<f32> {
  // expected-error @below {{couples microbatches: the batch of its operand is nowhere in its result; say batch.microbatches: 1}}
  %b = par.broadcast_in_dim %x dims [0, 1] : tensor<1x4xf32> to tensor<8x4xf32>
  %l = par.reduce sum %b dims [0, 1] : tensor<8x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}

// -----

par.step @eval(%x: tensor<8x4xf32>) -> tensor<f32> {
  // expected-error @below {{couples microbatches: its sharding rule is not known}}
  %0 = arith.negf %x : tensor<8x4xf32>
  %l = par.reduce sum %0 dims [0, 1] : tensor<8x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}

// -----

// expected-error @below {{output 0 has its batch in dim 1; only dim 0 is supported yet}}
par.step @predict(%x: tensor<8x4xf32>) -> tensor<4x8xf32> {
  %t = par.transpose %x [1, 0] : tensor<8x4xf32> to tensor<4x8xf32>
  par.return %t : tensor<4x8xf32>
}
