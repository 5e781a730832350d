// Heads and their elements are one dim: the elements can be sharded there only if the heads are sharded completely. A
// stronger sharding that the plan requests of a result is made after the op.
// RUN: par-opt %s --par-partition-fragments | FileCheck %s
// RUN: par-opt %s --par-check-phases=passes=par-partition-fragments -o /dev/null

par.stage @s0 <"tp.0"=2, "tp.1"=2> ranks [0, 1, 2, 3]
// CHECK-LABEL: par.fragment @split
// CHECK-SAME: (%[[X:.*]]: tensor<1x8xf32>) -> tensor<1x2x2xf32>
// CHECK: %[[HEADS:.*]] = par.reshape %[[X]] : tensor<1x8xf32> to tensor<1x2x4xf32>
// CHECK: par.dynamic_slice %[[HEADS]] at %{{.*}} dim 2 size 2
par.fragment @split(%x: tensor<2x8xf32>) -> tensor<2x2x4xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<forward>, shardings = [#par.sharding<[{"tp.0"}, {}]>],
    result_shardings = [#par.sharding<[{"tp.0"}, {}, {"tp.1"}]>]} {
  %h = par.reshape %x {shardings = [#par.sharding<[{"tp.0"}, {}, {"tp.1"}]>]} : tensor<2x8xf32> to tensor<2x2x4xf32>
  par.return %h : tensor<2x2x4xf32>
}

// The heads are cut completely, so the elements may be too.
// CHECK-LABEL: par.fragment @both
// CHECK: par.reshape %{{.*}} : tensor<2x2xf32> to tensor<2x1x2xf32>
// CHECK-NEXT: par.return
par.fragment @both(%x: tensor<2x8xf32>) -> tensor<2x2x4xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<forward>, shardings = [#par.sharding<[{}, {"tp.0", "tp.1"}]>],
    result_shardings = [#par.sharding<[{}, {"tp.0"}, {"tp.1"}]>]} {
  %h = par.reshape %x {shardings = [#par.sharding<[{}, {"tp.0"}, {"tp.1"}]>]} : tensor<2x8xf32> to tensor<2x2x4xf32>
  par.return %h : tensor<2x2x4xf32>
}

par.step @predict(%x: !par.dist<tensor<2x8xf32>, @s0, [{"tp.0"}, {}]>, %y: !par.dist<tensor<2x8xf32>, @s0, [{}, {"tp.0", "tp.1"}]>)
    -> (!par.dist<tensor<2x2x4xf32>, @s0, [{"tp.0"}, {}, {"tp.1"}]>, !par.dist<tensor<2x2x4xf32>, @s0, [{}, {"tp.0"}, {"tp.1"}]>)
    attributes {inputs = ["x", "y"], outputs = ["split", "both"]} {
  %a = par.run @split(%x) : (!par.dist<tensor<2x8xf32>, @s0, [{"tp.0"}, {}]>) -> !par.dist<tensor<2x2x4xf32>, @s0, [{"tp.0"}, {}, {"tp.1"}]>
  %b = par.run @both(%y) : (!par.dist<tensor<2x8xf32>, @s0, [{}, {"tp.0", "tp.1"}]>) -> !par.dist<tensor<2x2x4xf32>, @s0, [{}, {"tp.0"}, {"tp.1"}]>
  par.return %a, %b : !par.dist<tensor<2x2x4xf32>, @s0, [{"tp.0"}, {}, {"tp.1"}]>, !par.dist<tensor<2x2x4xf32>, @s0, [{}, {"tp.0"}, {"tp.1"}]>
}
