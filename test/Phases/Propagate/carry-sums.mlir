// Two experts answer each token, each token's answers are weighted and summed. The matmul is a sum over tp, and stays
// one until one value a token is left, which is sharded over tp along the sequence (rows of tokens of all samples are
// not). Backward reads the answers for the weights' gradient, one number each: there they are reduced.
// RUN: par-opt %s --par-differentiate --par-add-optimizer=kind=sgd --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp' --par-verify-propagate -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// RUN: par-opt %t.mlir --par-partition-fragments --par-verify-partition | FileCheck %s --check-prefix=LOCAL
// RUN: par-opt %t.mlir --par-check-phases=passes=par-partition-fragments -o /dev/null

// CHECK-LABEL: par.fragment @train.s0.forward
// CHECK: par.dot {{.*}} contracting [2] x [0] {{.*}}<[{"dp"}, {}, {}], unreduced={"tp"}>
// CHECK: par.multiply {{.*}}unreduced={"tp"}
// CHECK: par.reduce sum {{.*}} dims [1] {{.*}}<[{"dp"}, {}], unreduced={"tp"}>
// CHECK: par.add {{.*}}<[{"dp"}, {"tp"}, {}]>]
// CHECK-LABEL: par.fragment @train.s0.backward

// LOCAL-LABEL: par.fragment @train.s0.forward
// LOCAL-NOT: par.all_reduce
// LOCAL: par.reduce_scatter sum %{{.*}} dims [1] over ["tp"] : (tensor<2x8x32xf32>) -> tensor<2x4x32xf32>
// LOCAL-NOT: over ["tp"]
// LOCAL-LABEL: par.fragment @train.s0.backward
// LOCAL: par.all_reduce sum %{{.*}} over ["tp"] : (tensor<16x2xf32>) -> tensor<16x2xf32>
// LOCAL-LABEL: par.fragment @train.s0.update

par.stage @s0 <"dp"=2, "tp"=2> ranks [0,1,2,3]
par.variable @w parameter : tensor<16x32xf32> sharding <[{"tp"}, {}]>
par.variable @g parameter : tensor<32x2xf32>
par.step @eval(%x: tensor<8x8x2x16xf32>, %r: tensor<8x8x32xf32>) -> tensor<f32> attributes {inputs = ["x", "r"], outputs = ["loss"]} {
  %w = par.read @w : tensor<16x32xf32>
  %g = par.read @g : tensor<32x2xf32>
  %t = par.reshape %x {stage = 0 : i64} : tensor<8x8x2x16xf32> to tensor<64x2x16xf32>
  %p = par.dot %t, %w contracting [2] x [0] {stage = 0 : i64} : (tensor<64x2x16xf32>, tensor<16x32xf32>) -> tensor<64x2x32xf32>
  %i = par.reshape %x {stage = 0 : i64} : tensor<8x8x2x16xf32> to tensor<64x32xf32>
  %d = par.dot %i, %g contracting [1] x [0] {stage = 0 : i64} : (tensor<64x32xf32>, tensor<32x2xf32>) -> tensor<64x2xf32>
  %e = par.tanh %d {stage = 0 : i64} : tensor<64x2xf32>
  %b = par.broadcast_in_dim %e dims [0, 1] {stage = 0 : i64} : tensor<64x2xf32> to tensor<64x2x32xf32>
  %m = par.multiply %p, %b {stage = 0 : i64} : tensor<64x2x32xf32>
  %a = par.reduce sum %m dims [1] {stage = 0 : i64} : tensor<64x2x32xf32> to tensor<64x32xf32>
  %s = par.reshape %a {stage = 0 : i64} : tensor<64x32xf32> to tensor<8x8x32xf32>
  %y = par.add %s, %r {stage = 0 : i64} : tensor<8x8x32xf32>
  %c = par.constrain %y <[{"dp"}, {"tp"}, {}]> {stage = 0 : i64} : tensor<8x8x32xf32>
  %h = par.tanh %c {stage = 0 : i64} : tensor<8x8x32xf32>
  %l = par.reduce sum %h dims [0, 1, 2] {stage = 0 : i64} : tensor<8x8x32xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
