// Collectives, buckets among them, survive printing and parsing.
// RUN: par-opt %s | par-opt | FileCheck %s
par.stage @s0 <"dp"=2, "tp.0"=2, "tp.1"=2> ranks [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK: par.fragment @f
par.fragment @f(%x: tensor<4x8xf32>, %y: tensor<2xf32>) -> tensor<4x8xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<reduce>, local} {
  // CHECK: par.all_reduce{{ +}}sum %arg0, %arg1 over ["dp"] : (tensor<4x8xf32>, tensor<2xf32>) -> (tensor<4x8xf32>, tensor<2xf32>)
  %0:2 = par.all_reduce sum %x, %y over ["dp"] : (tensor<4x8xf32>, tensor<2xf32>) -> (tensor<4x8xf32>, tensor<2xf32>)
  // CHECK: par.all_gather %{{.*}} dims [0] over ["tp.0", "tp.1"] : (tensor<4x8xf32>) -> tensor<16x8xf32>
  %1 = par.all_gather %0#0 dims [0] over ["tp.0", "tp.1"] : (tensor<4x8xf32>) -> tensor<16x8xf32>
  // CHECK: par.reduce_scatter{{ +}}sum %{{.*}} dims [0] over ["tp.0", "tp.1"] : (tensor<16x8xf32>) -> tensor<4x8xf32>
  %2 = par.reduce_scatter sum %1 dims [0] over ["tp.0", "tp.1"] : (tensor<16x8xf32>) -> tensor<4x8xf32>
  // CHECK: par.all_to_all %{{.*}} split [0] concat [1] over ["tp.1"] : (tensor<4x8xf32>) -> tensor<2x16xf32>
  %3 = par.all_to_all %2 split [0] concat [1] over ["tp.1"] : (tensor<4x8xf32>) -> tensor<2x16xf32>
  // CHECK: par.axis_index over ["tp.0", "tp.1"] : tensor<i64>
  %4 = par.axis_index over ["tp.0", "tp.1"] : tensor<i64>
  par.return %2 : tensor<4x8xf32>
}
