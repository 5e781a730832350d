// A table of two texts: its gradient is rows added up twice, which lie over tp along the sequence. If the table is
// larger than the rows, both lie as the table does, and Partition brings the rows there. If it is smaller, their sum
// over tp is scattered.
// RUN: par-opt %s --par-differentiate --par-add-optimizer=kind=sgd --par-slice-microbatches=microbatches=2 \
// RUN:   --par-assign-stages --par-form-fragments --par-propagate-shardings=batch-axes=dp --par-verify-propagate \
// RUN:   -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir
// RUN: par-opt %t.mlir --par-partition-fragments --par-verify-partition | FileCheck %s --check-prefix=LOCAL

// CHECK-LABEL: par.fragment @train.s0.backward
// CHECK-COUNT-2: par.index_add {{.*}}[#par.sharding<[{}, {}], unreduced={"dp", "tp"}>]{{.*}} to tensor<4x32xf32>
// CHECK-COUNT-2: par.index_add {{.*}}[#par.sharding<[{"tp"}, {}], unreduced={"dp"}>]{{.*}} to tensor<64x32xf32>

// LOCAL-LABEL: par.fragment @train.s0.backward
// LOCAL: par.index_add {{.*}} to tensor<4x32xf32>
// LOCAL: par.index_add {{.*}} to tensor<4x32xf32>
// LOCAL: par.all_gather {{.*}} -> tensor<2x4x32xf32>
// LOCAL: par.index_add {{.*}} to tensor<32x32xf32>
// LOCAL: par.index_add {{.*}} to tensor<32x32xf32>
// LOCAL: par.reduce_scatter{{ +}}sum {{.*}} -> tensor<2x32xf32>
// LOCAL-NOT: par.reduce_scatter
// LOCAL-LABEL: par.fragment @train.s0.update

par.stage @s0 <"dp"=2, "tp"=2> ranks [0,1,2,3]
par.variable @table parameter : tensor<64x32xf32> sharding <[{"tp"}, {}]>
par.variable @small parameter : tensor<4x32xf32> sharding <[{"tp"}, {}]>
par.step @eval(%ids: tensor<8x4xi64>, %labels: tensor<8x4xi64>) -> tensor<f32> 
    attributes {inputs = ["ids", "labels"], outputs = ["loss"]} {
  %w = par.read @table : tensor<64x32xf32>
  %v = par.read @small : tensor<4x32xf32>
  %x = par.gather %w, %ids dim 0 {stage = 0 : i64} : tensor<64x32xf32>, tensor<8x4xi64> to tensor<8x4x32xf32>
  %y = par.gather %w, %labels dim 0 {stage = 0 : i64} : tensor<64x32xf32>, tensor<8x4xi64> to tensor<8x4x32xf32>
  %p = par.gather %v, %ids dim 0 {stage = 0 : i64} : tensor<4x32xf32>, tensor<8x4xi64> to tensor<8x4x32xf32>
  %q = par.gather %v, %labels dim 0 {stage = 0 : i64} : tensor<4x32xf32>, tensor<8x4xi64> to tensor<8x4x32xf32>
  %x0 = par.constrain %x <[{"dp"}, {"tp"}, {}]> {stage = 0 : i64} : tensor<8x4x32xf32>
  %y0 = par.constrain %y <[{"dp"}, {"tp"}, {}]> {stage = 0 : i64} : tensor<8x4x32xf32>
  %p0 = par.constrain %p <[{"dp"}, {"tp"}, {}]> {stage = 0 : i64} : tensor<8x4x32xf32>
  %q0 = par.constrain %q <[{"dp"}, {"tp"}, {}]> {stage = 0 : i64} : tensor<8x4x32xf32>
  %a = par.multiply %x0, %y0 {stage = 0 : i64} : tensor<8x4x32xf32>
  %b = par.multiply %p0, %q0 {stage = 0 : i64} : tensor<8x4x32xf32>
  %c = par.multiply %a, %b {stage = 0 : i64} : tensor<8x4x32xf32>
  %l = par.reduce sum %c dims [0, 1, 2] {stage = 0 : i64} : tensor<8x4x32xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
