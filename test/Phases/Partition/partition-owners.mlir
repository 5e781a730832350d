// An axis that lies on different factors of an op cuts the one on which most tensors have it: a weight that lies over the
// batch's axis is gathered and its gradient scattered, even where it is larger than the batch.
// RUN: par-opt %s --par-partition-fragments | FileCheck %s
// RUN: par-opt %s --par-check-phases=passes=par-partition-fragments -o /dev/null

par.stage @s0 <"dp"=2> ranks [0, 1]

// CHECK-LABEL: par.fragment @forward
// CHECK-SAME: (%[[X:.*]]: tensor<1x32xf32>, %[[W:.*]]: tensor<16x64xf32>)
// CHECK: %[[WHOLE:.*]] = par.all_gather %[[W]] {{.*}} -> tensor<32x64xf32>
// CHECK-NEXT: %[[Y:.*]] = par.dot %[[X]], %[[WHOLE]]
// CHECK-NEXT: par.return %[[Y]]
par.fragment @forward(%x: tensor<2x32xf32>, %w: tensor<32x64xf32>) -> tensor<2x64xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<forward>,
    shardings = [#par.sharding<[{"dp"}, {}]>, #par.sharding<[{"dp"}, {}]>],
    result_shardings = [#par.sharding<[{"dp"}, {}]>]} {
  %y = par.dot %x, %w contracting [1] x [0] {shardings = [#par.sharding<[{"dp"}, {}]>]}
    : (tensor<2x32xf32>, tensor<32x64xf32>) -> tensor<2x64xf32>
  par.return %y : tensor<2x64xf32>
}

// CHECK-LABEL: par.fragment @backward
// CHECK-SAME: (%[[X:.*]]: tensor<1x32xf32>, %[[D:.*]]: tensor<1x64xf32>)
// CHECK: %[[G:.*]] = par.dot %[[X]], %[[D]] {{.*}} -> tensor<32x64xf32>
// CHECK-NEXT: %[[SHARD:.*]] = par.reduce_scatter sum %[[G]] {{.*}} -> tensor<16x64xf32>
// CHECK-NEXT: par.return %[[SHARD]]
par.fragment @backward(%x: tensor<2x32xf32>, %d: tensor<2x64xf32>) -> tensor<32x64xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<backward>,
    shardings = [#par.sharding<[{"dp"}, {}]>, #par.sharding<[{"dp"}, {}]>],
    result_shardings = [#par.sharding<[{"dp"}, {}]>]} {
  %g = par.dot %x, %d contracting [0] x [0] {shardings = [#par.sharding<[{"dp"}, {}]>]}
    : (tensor<2x32xf32>, tensor<2x64xf32>) -> tensor<32x64xf32>
  par.return %g : tensor<32x64xf32>
}

// A bias with that sharding is gathered, too, as its broadcast is larger.
// CHECK-LABEL: par.fragment @bias
// CHECK: %[[B:.*]] = par.all_gather %{{.*}} -> tensor<6xf32>
// CHECK-NEXT: par.broadcast_in_dim %[[B]] dims [1] : tensor<6xf32> to tensor<2x6xf32>
par.fragment @bias(%b: tensor<6xf32>) -> tensor<4x6xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<forward>,
    shardings = [#par.sharding<[{"dp"}]>], result_shardings = [#par.sharding<[{"dp"}, {}]>]} {
  %0 = par.broadcast_in_dim %b dims [1] {shardings = [#par.sharding<[{"dp"}, {}]>]} : tensor<6xf32> to tensor<4x6xf32>
  par.return %0 : tensor<4x6xf32>
}

par.step @predict(%x: !par.dist<tensor<2x32xf32>, @s0, [{"dp"}, {}]>, %w: !par.dist<tensor<32x64xf32>, @s0, [{"dp"}, {}]>, %b: !par.dist<tensor<6xf32>, @s0, [{"dp"}]>) -> (!par.dist<tensor<32x64xf32>, @s0, [{"dp"}, {}]>, !par.dist<tensor<4x6xf32>, @s0, [{"dp"}, {}]>) {
  %y = par.run @forward(%x, %w) : (!par.dist<tensor<2x32xf32>, @s0, [{"dp"}, {}]>, !par.dist<tensor<32x64xf32>, @s0, [{"dp"}, {}]>) -> !par.dist<tensor<2x64xf32>, @s0, [{"dp"}, {}]>
  %g = par.run @backward(%x, %y) : (!par.dist<tensor<2x32xf32>, @s0, [{"dp"}, {}]>, !par.dist<tensor<2x64xf32>, @s0, [{"dp"}, {}]>) -> !par.dist<tensor<32x64xf32>, @s0, [{"dp"}, {}]>
  %0 = par.run @bias(%b) : (!par.dist<tensor<6xf32>, @s0, [{"dp"}]>) -> !par.dist<tensor<4x6xf32>, @s0, [{"dp"}, {}]>
  par.return %g, %0 : !par.dist<tensor<32x64xf32>, @s0, [{"dp"}, {}]>, !par.dist<tensor<4x6xf32>, @s0, [{"dp"}, {}]>
}
