// A table is sharded over tp, and looked-up rows over tp along another dim: either may have the axis, and cost decides.
// RUN: par-opt %s --par-partition-fragments | FileCheck %s
// RUN: par-opt %s --par-check-phases=passes=par-partition-fragments -o /dev/null

!table = !par.dist<tensor<65536x8xf32>, @s0, [{"tp"}, {}]>
!ids = !par.dist<tensor<8x16xi64>, @s0, [{"dp"}, {"tp"}]>
!gradient = !par.dist<tensor<65536x8xf32>, @s0, [{"tp"}, {}], unreduced={"dp"}>
!rows = !par.dist<tensor<8x16x8xf32>, @s0, [{"dp"}, {"tp"}, {}]>
!few = !par.dist<tensor<4x64xf32>, @s0, [{"tp"}, {}]>
!many_ids = !par.dist<tensor<8x4096xi64>, @s0, [{"dp"}, {"tp"}]>
!many_rows = !par.dist<tensor<8x4096x64xf32>, @s0, [{"dp"}, {"tp"}, {}]>
!over_dp = !par.dist<tensor<65536x8xf32>, @s0, [{"dp"}, {}]>
!ids_dp = !par.dist<tensor<8x16xi64>, @s0, [{"dp"}, {}]>
!rows_dp = !par.dist<tensor<8x16x8xf32>, @s0, [{"dp"}, {}, {}]>
par.stage @s0 <"dp"=4, "tp"=2> ranks [0, 1, 2, 3, 4, 5, 6, 7]

// The table is larger than the rows: ids are gathered, and looked up where rows lie.
// CHECK-LABEL: par.fragment @look_up
// CHECK-NOT: tensor<65536x8xf32>
// CHECK: %[[IDS:.*]] = par.all_gather {{.*}} -> tensor<2x16xi64>
// CHECK: par.gather {{.*}} tensor<32768x8xf32>, tensor<2x16xi64> to tensor<2x16x8xf32>
// CHECK: par.reduce_scatter{{ +}}sum {{.*}} -> tensor<2x8x8xf32>
// CHECK-NOT: tensor<65536x8xf32>
par.fragment @look_up(%t: tensor<65536x8xf32>, %i: tensor<8x16xi64>) -> tensor<8x16x8xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<forward>,
    shardings = [#par.sharding<[{"tp"}, {}]>, #par.sharding<[{"dp"}, {"tp"}]>],
    result_shardings = [#par.sharding<[{"dp"}, {"tp"}, {}]>]} {
  %0 = par.gather %t, %i dim 0 {shardings = [#par.sharding<[{"dp"}, {"tp"}, {}]>]}
    : tensor<65536x8xf32>, tensor<8x16xi64> to tensor<8x16x8xf32>
  par.return %0 : tensor<8x16x8xf32>
}

// Its gradient: rows are gathered and added up where they belong, in place of sums as large as the table.
// CHECK-LABEL: par.fragment @add_up
// CHECK-NOT: tensor<65536x8xf32>
// CHECK: par.index_add {{.*}} : tensor<2x16x8xf32>, tensor<2x16xi64> to tensor<32768x8xf32>
// CHECK-NOT: par.reduce_scatter
par.fragment @add_up(%r: tensor<8x16x8xf32>, %i: tensor<8x16xi64>) -> tensor<65536x8xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<backward>,
    shardings = [#par.sharding<[{"dp"}, {"tp"}, {}]>, #par.sharding<[{"dp"}, {"tp"}]>],
    result_shardings = [#par.sharding<[{"tp"}, {}], unreduced={"dp"}>]} {
  %0 = par.index_add %r, %i dim 0 size 65536 {shardings = [#par.sharding<[{"tp"}, {}], unreduced={"dp"}>]}
    : tensor<8x16x8xf32>, tensor<8x16xi64> to tensor<65536x8xf32>
  par.return %0 : tensor<65536x8xf32>
}

// A table of few rows is gathered.
// CHECK-LABEL: par.fragment @few_rows
// CHECK: par.all_gather {{.*}} -> tensor<4x64xf32>
// CHECK-NOT: par.reduce_scatter
par.fragment @few_rows(%t: tensor<4x64xf32>, %i: tensor<8x4096xi64>) -> tensor<8x4096x64xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<forward>,
    shardings = [#par.sharding<[{"tp"}, {}]>, #par.sharding<[{"dp"}, {"tp"}]>],
    result_shardings = [#par.sharding<[{"dp"}, {"tp"}, {}]>]} {
  %0 = par.gather %t, %i dim 0 {shardings = [#par.sharding<[{"dp"}, {"tp"}, {}]>]}
    : tensor<4x64xf32>, tensor<8x4096xi64> to tensor<8x4096x64xf32>
  par.return %0 : tensor<8x4096x64xf32>
}

// A table over the batch's axis, too, is looked up where it lies.
// CHECK-LABEL: par.fragment @over_batch
// CHECK-NOT: tensor<65536x8xf32>
// CHECK: par.gather {{.*}} tensor<16384x8xf32>, tensor<8x16xi64> to tensor<8x16x8xf32>
// CHECK: par.reduce_scatter{{ +}}sum {{.*}} -> tensor<2x16x8xf32>
par.fragment @over_batch(%t: tensor<65536x8xf32>, %i: tensor<8x16xi64>) -> tensor<8x16x8xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<forward>,
    shardings = [#par.sharding<[{"dp"}, {}]>, #par.sharding<[{"dp"}, {}]>],
    result_shardings = [#par.sharding<[{"dp"}, {}, {}]>]} {
  %0 = par.gather %t, %i dim 0 {shardings = [#par.sharding<[{"dp"}, {}, {}]>]}
    : tensor<65536x8xf32>, tensor<8x16xi64> to tensor<8x16x8xf32>
  par.return %0 : tensor<8x16x8xf32>
}

par.step @train(%t: !table, %i: !ids) -> !gradient {
  %r = par.run @look_up(%t, %i) : (!table, !ids) -> !rows
  %g = par.run @add_up(%r, %i) : (!rows, !ids) -> !gradient
  par.return %g : !gradient
}
par.step @few(%t: !few, %i: !many_ids) -> !many_rows {
  %0 = par.run @few_rows(%t, %i) : (!few, !many_ids) -> !many_rows
  par.return %0 : !many_rows
}
par.step @predict(%t: !over_dp, %i: !ids_dp) -> !rows_dp {
  %0 = par.run @over_batch(%t, %i) : (!over_dp, !ids_dp) -> !rows_dp
  par.return %0 : !rows_dp
}
