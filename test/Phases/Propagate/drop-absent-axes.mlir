// An axis of which a stage has one rank is no axis there: in meshes, types, fragments and places; reshards that then change
// nothing are gone, and a variable whose two places are alike lies in one.
// RUN: par-opt %s --par-drop-absent-axes | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-drop-absent-axes,par-verify-propagate,par-nest-transfers,par-partition-fragments,par-verify-partition' > /dev/null

// CHECK: par.stage @s0 <"dp"=2> ranks [0, 1]
// CHECK: par.stage @s1 <"tp"=2> ranks [2, 3]
// CHECK: par.variable @w parameter : tensor<4x6xf32> at [!par.dist<tensor<4x6xf32>, @s1, [{}, {"tp"}]>]
// CHECK: par.fragment @eval.s0.forward{{.*}}shardings = [#par.sharding<[{"dp"}, {}]>]
// CHECK: par.sin {{.*}}shardings = [#par.sharding<[{"dp"}, {}]>]
// CHECK: par.fragment @eval.s1.forward{{.*}}shardings = [#par.sharding<[{}, {}]>, #par.sharding<[{}, {"tp"}]>]
// CHECK: par.dot {{.*}}shardings = [#par.sharding<[{}, {"tp"}]>]
// CHECK-LABEL: par.step @eval
// CHECK-SAME: !par.dist<tensor<8x4xf32>, @s0, [{"dp"}, {}]>
// CHECK-NOT: par.reshard
// CHECK: par.transfer %{{.*}} : <tensor<8x4xf32>, @s0, [{"dp"}, {}]> to <tensor<8x4xf32>, @s1, [{}, {}]>
par.stage @s0 <"dp"=2, "tp"=1> ranks [0, 1]
par.stage @s1 <"tp"=2, "dp"=1> ranks [2, 3]
!w = !par.dist<tensor<4x6xf32>, @s1, [{}, {"tp"}]>
!v = !par.dist<tensor<4x6xf32>, @s1, [{"dp"}, {"tp"}]>
!x0 = !par.dist<tensor<8x4xf32>, @s0, [{"dp"}, {}]>
!x1 = !par.dist<tensor<8x4xf32>, @s1, [{"dp"}, {}]>
!y = !par.dist<tensor<8x6xf32>, @s1, [{"dp"}, {"tp"}]>
par.variable @w parameter : tensor<4x6xf32> at [!w, !v]
par.fragment @eval.s0.forward(%x: tensor<8x4xf32>) -> tensor<8x4xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<forward>, shardings = [#par.sharding<[{"dp"}, {}]>],
                result_shardings = [#par.sharding<[{"dp"}, {}]>]} {
  %0 = par.sin %x {shardings = [#par.sharding<[{"dp"}, {}]>]} : tensor<8x4xf32>
  par.return %0 : tensor<8x4xf32>
}
par.fragment @eval.s1.forward(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> tensor<8x6xf32>
    attributes {stage = @s1, kind = #par.fragment_kind<forward>, shardings = [#par.sharding<[{"dp"}, {}]>, #par.sharding<[{"dp"}, {"tp"}]>],
                result_shardings = [#par.sharding<[{"dp"}, {"tp"}]>]} {
  %0 = par.dot %x, %w contracting [1] x [0] {shardings = [#par.sharding<[{"dp"}, {"tp"}]>]} : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  par.return %0 : tensor<8x6xf32>
}
par.step @eval(%x: !x0) -> !y attributes {inputs = ["x"], outputs = ["y"]} {
  %w = par.read @w : !w
  %v = par.reshard %w : <tensor<4x6xf32>, @s1, [{}, {"tp"}]> to <tensor<4x6xf32>, @s1, [{"dp"}, {"tp"}]>
  %a = par.run @eval.s0.forward(%x) : (!x0) -> !x0
  %b = par.transfer %a : <tensor<8x4xf32>, @s0, [{"dp"}, {}]> to <tensor<8x4xf32>, @s1, [{"dp"}, {}]>
  %y = par.run @eval.s1.forward(%b, %v) : (!x1, !v) -> !y
  par.return %y : !y
}
