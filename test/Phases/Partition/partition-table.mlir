// A table is sharded over tp, and looked-up rows over tp along another dim: the axis shards the one of which a rank has
// more bytes. Here it is the table, half of all looked-up rows, but twice a rank's.
// RUN: par-opt %s --par-partition-fragments | FileCheck %s
// RUN: par-opt %s --par-check-phases=passes=par-partition-fragments -o /dev/null

// CHECK-LABEL: par.fragment @look_up
// CHECK-NOT: par.all_gather
// CHECK: par.gather {{.*}} tensor<32x8xf32>, tensor<2x16xi64> to tensor<2x16x8xf32>
// CHECK: par.reduce_scatter{{ +}}sum {{.*}} -> tensor<2x8x8xf32>
par.stage @s0 <"dp"=4, "tp"=2> ranks [0, 1, 2, 3, 4, 5, 6, 7]

par.fragment @look_up(%t: tensor<64x8xf32>, %i: tensor<8x16xi64>) -> tensor<8x16x8xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<forward>,
    shardings = [#par.sharding<[{"tp"}, {}]>, #par.sharding<[{"dp"}, {}]>],
    result_shardings = [#par.sharding<[{"dp"}, {"tp"}, {}]>]} {
  %0 = par.gather %t, %i dim 0 {shardings = [#par.sharding<[{"dp"}, {"tp"}, {}]>]} : tensor<64x8xf32>, tensor<8x16xi64> to tensor<8x16x8xf32>
  par.return %0 : tensor<8x16x8xf32>
}
par.step @predict(%t: !par.dist<tensor<64x8xf32>, @s0, [{"tp"}, {}]>, %i: !par.dist<tensor<8x16xi64>, @s0, [{"dp"}, {}]>) -> !par.dist<tensor<8x16x8xf32>, @s0, [{"dp"}, {"tp"}, {}]> {
  %0 = par.run @look_up(%t, %i) : (!par.dist<tensor<64x8xf32>, @s0, [{"tp"}, {}]>, !par.dist<tensor<8x16xi64>, @s0, [{"dp"}, {}]>) -> !par.dist<tensor<8x16x8xf32>, @s0, [{"dp"}, {"tp"}, {}]>
  par.return %0 : !par.dist<tensor<8x16x8xf32>, @s0, [{"dp"}, {"tp"}, {}]>
}
