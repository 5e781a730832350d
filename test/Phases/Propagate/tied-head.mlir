// A tied table's gradient has two parts: that of the head, sharded by the table's rows, and that of the looked-up
// tokens, which are sharded over the same axis along the sequence: a sum over it. The two do not meet as sums, so the
// second is sharded like the first, and Partition brings the tokens there instead of scattering a table in every
// microbatch. Over dp both are sums, and stay so.
// RUN: par-opt %s --par-differentiate --par-add-optimizer=kind=sgd --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp' --par-verify-propagate -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// RUN: par-opt %t.mlir --par-partition-fragments --par-verify-partition | FileCheck %s --check-prefix=LOCAL

// CHECK-LABEL: par.fragment @train.s0.backward
// CHECK: par.index_add {{.*}}[#par.sharding<[{"tp"}, {}], unreduced={"dp"}>]
// CHECK: par.add {{.*}}[#par.sharding<[{"tp"}, {}], unreduced={"dp"}>]

// LOCAL-LABEL: par.fragment @train.s0.backward
// LOCAL: %[[TOKENS:.*]] = par.all_gather %{{.*}} dims [1] over ["tp"] : (tensor<2x2x64xf32>) -> tensor<2x4x64xf32>
// LOCAL: par.index_add {{.*}} size 16 {{.*}} to tensor<16x64xf32>
// LOCAL-NOT: par.reduce_scatter
// LOCAL-LABEL: par.fragment @train.s0.update

par.stage @s0 <"dp"=2, "tp"=2> ranks [0,1,2,3]
par.variable @table parameter : tensor<32x64xf32> sharding <[{"tp"}, {}]>
par.step @eval(%ids: tensor<8x4xi64>, %labels: tensor<8x4xi64>) -> tensor<f32> attributes {inputs = ["ids", "labels"], outputs = ["loss"]} {
  %w = par.read @table : tensor<32x64xf32>
  %x = par.gather %w, %ids dim 0 {stage = 0 : i64} : tensor<32x64xf32>, tensor<8x4xi64> to tensor<8x4x64xf32>
  %x0 = par.constrain %x <[{"dp"}, {"tp"}, {}]> {stage = 0 : i64} : tensor<8x4x64xf32>
  %y = par.tanh %x0 {stage = 0 : i64} : tensor<8x4x64xf32>
  %z = par.dot %y, %w contracting [2] x [1] {stage = 0 : i64} : (tensor<8x4x64xf32>, tensor<32x64xf32>) -> tensor<8x4x32xf32>
  %z0 = par.constrain %z <[{"dp"}, {}, {"tp"}]> {stage = 0 : i64} : tensor<8x4x32xf32>
  %s = par.multiply %z0, %z0 {stage = 0 : i64} : tensor<8x4x32xf32>
  %l = par.reduce sum %s dims [0, 1, 2] {stage = 0 : i64} : tensor<8x4x32xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
