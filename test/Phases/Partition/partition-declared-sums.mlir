// A result declared as a sum over an axis is one, whatever its operands' shardings: the contracted dim is sharded like
// the sum if an operand is; else the first rank keeps the matmul and the others hold zeros.
// RUN: par-opt %s --par-partition-fragments | FileCheck %s
// RUN: par-opt %s --par-check-phases=passes=par-partition-fragments -o /dev/null

par.stage @s0 <"dp"=2, "tp"=2> ranks [0, 1, 2, 3]
par.variable @w parameter : tensor<4x6xf32> at [!par.dist<tensor<4x6xf32>, @s0, [{}, {}]>]

// The operands disagree, the sum decides.
// CHECK-LABEL: par.fragment @cut
// CHECK-SAME: (%[[X:.*]]: tensor<4x4xf32>, %[[D:.*]]: tensor<4x6xf32>)
// CHECK: %[[G:.*]] = par.dot %{{.*}}, %[[D]] contracting [0] x [0] : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: par.return %[[G]]
par.fragment @cut(%x: tensor<8x4xf32>, %d: tensor<8x6xf32>) -> tensor<4x6xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<backward>,
    shardings = [#par.sharding<[{"dp"}, {}]>, #par.sharding<[{"tp"}, {}]>],
    result_shardings = [#par.sharding<[{}, {}], unreduced={"tp"}>]} {
  %g = par.dot %x, %d contracting [0] x [0] {shardings = [#par.sharding<[{}, {}], unreduced={"tp"}>]}
    : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  par.return %g : tensor<4x6xf32>
}

// Nothing is cut over tp.
// CHECK-LABEL: par.fragment @whole
// CHECK: %[[G:.*]] = par.dot
// CHECK: %[[INDEX:.*]] = par.axis_index over ["tp"]
// CHECK: %[[FIRST:.*]] = par.compare eq
// CHECK: %[[SUM:.*]] = par.select %[[FIRST]], %[[G]], %{{.*}} : tensor<4x6xi1>, tensor<4x6xf32>
// CHECK-NEXT: par.return %[[SUM]]
par.fragment @whole(%x: tensor<8x4xf32>, %d: tensor<8x6xf32>) -> tensor<4x6xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<backward>,
    shardings = [#par.sharding<[{}, {}]>, #par.sharding<[{}, {}]>],
    result_shardings = [#par.sharding<[{}, {}], unreduced={"tp"}>]} {
  %g = par.dot %x, %d contracting [0] x [0] {shardings = [#par.sharding<[{}, {}], unreduced={"tp"}>]}
    : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  par.return %g : tensor<4x6xf32>
}

// A sum over two axes becomes one over one of them: the other is reduced on the way.
// CHECK-LABEL: par.fragment @linear
// CHECK: par.all_reduce sum %{{.*}} over ["dp"]
// CHECK: par.negate
par.fragment @linear(%x: tensor<8x4xf32>, %d: tensor<8x6xf32>) -> tensor<4x6xf32> attributes {
    stage = @s0, kind = #par.fragment_kind<backward>,
    shardings = [#par.sharding<[{"dp", "tp"}, {}]>, #par.sharding<[{"dp", "tp"}, {}]>],
    result_shardings = [#par.sharding<[{}, {}], unreduced={"tp"}>]} {
  %g = par.dot %x, %d contracting [0] x [0] {shardings = [#par.sharding<[{}, {}], unreduced={"dp", "tp"}>]}
    : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %n = par.negate %g {shardings = [#par.sharding<[{}, {}], unreduced={"tp"}>]} : tensor<4x6xf32>
  par.return %n : tensor<4x6xf32>
}

par.step @train(%x: !par.dist<tensor<1x8x4xf32>, @s0, [{}, {"dp"}, {}]>, %d: !par.dist<tensor<1x8x6xf32>, @s0, [{}, {"tp"}, {}]>,
                %xw: !par.dist<tensor<1x8x4xf32>, @s0, [{}, {}, {}]>, %dw: !par.dist<tensor<1x8x6xf32>, @s0, [{}, {}, {}]>,
                %xs: !par.dist<tensor<1x8x4xf32>, @s0, [{}, {"dp", "tp"}, {}]>, %ds: !par.dist<tensor<1x8x6xf32>, @s0, [{}, {"dp", "tp"}, {}]>)
    -> (!par.dist<tensor<4x6xf32>, @s0, [{}, {}]>, !par.dist<tensor<4x6xf32>, @s0, [{}, {}]>, !par.dist<tensor<4x6xf32>, @s0, [{}, {}]>)
    attributes {inputs = ["x", "d", "xw", "dw", "xs", "ds"], outputs = ["cut", "whole", "linear"]} {
  %g:3 = par.loop 1 (%x, %d, %xw, %dw, %xs, %ds) {labels = ["w", "", ""]}
      : (!par.dist<tensor<1x8x4xf32>, @s0, [{}, {"dp"}, {}]>, !par.dist<tensor<1x8x6xf32>, @s0, [{}, {"tp"}, {}]>,
         !par.dist<tensor<1x8x4xf32>, @s0, [{}, {}, {}]>, !par.dist<tensor<1x8x6xf32>, @s0, [{}, {}, {}]>,
         !par.dist<tensor<1x8x4xf32>, @s0, [{}, {"dp", "tp"}, {}]>, !par.dist<tensor<1x8x6xf32>, @s0, [{}, {"dp", "tp"}, {}]>)
      -> (!par.dist<tensor<4x6xf32>, @s0, [{}, {}], unreduced={"tp"}>, !par.dist<tensor<4x6xf32>, @s0, [{}, {}], unreduced={"tp"}>,
          !par.dist<tensor<4x6xf32>, @s0, [{}, {}], unreduced={"tp"}>) {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<8x4xf32>, @s0, [{"dp"}, {}]>, %di: !par.dist<tensor<8x6xf32>, @s0, [{"tp"}, {}]>,
       %xwi: !par.dist<tensor<8x4xf32>, @s0, [{}, {}]>, %dwi: !par.dist<tensor<8x6xf32>, @s0, [{}, {}]>,
       %xsi: !par.dist<tensor<8x4xf32>, @s0, [{"dp", "tp"}, {}]>, %dsi: !par.dist<tensor<8x6xf32>, @s0, [{"dp", "tp"}, {}]>):
    %a = par.run @cut(%xi, %di) : (!par.dist<tensor<8x4xf32>, @s0, [{"dp"}, {}]>, !par.dist<tensor<8x6xf32>, @s0, [{"tp"}, {}]>)
      -> !par.dist<tensor<4x6xf32>, @s0, [{}, {}], unreduced={"tp"}>
    %b = par.run @whole(%xwi, %dwi) : (!par.dist<tensor<8x4xf32>, @s0, [{}, {}]>, !par.dist<tensor<8x6xf32>, @s0, [{}, {}]>)
      -> !par.dist<tensor<4x6xf32>, @s0, [{}, {}], unreduced={"tp"}>
    %c = par.run @linear(%xsi, %dsi) : (!par.dist<tensor<8x4xf32>, @s0, [{"dp", "tp"}, {}]>, !par.dist<tensor<8x6xf32>, @s0, [{"dp", "tp"}, {}]>)
      -> !par.dist<tensor<4x6xf32>, @s0, [{}, {}], unreduced={"tp"}>
    par.yield [sum, sum, sum] %a, %b, %c : !par.dist<tensor<4x6xf32>, @s0, [{}, {}], unreduced={"tp"}>,
      !par.dist<tensor<4x6xf32>, @s0, [{}, {}], unreduced={"tp"}>, !par.dist<tensor<4x6xf32>, @s0, [{}, {}], unreduced={"tp"}>
  }
  %ra = par.reshard %g#0 : <tensor<4x6xf32>, @s0, [{}, {}], unreduced={"tp"}> to <tensor<4x6xf32>, @s0, [{}, {}]>
  %rb = par.reshard %g#1 : <tensor<4x6xf32>, @s0, [{}, {}], unreduced={"tp"}> to <tensor<4x6xf32>, @s0, [{}, {}]>
  %rc = par.reshard %g#2 : <tensor<4x6xf32>, @s0, [{}, {}], unreduced={"tp"}> to <tensor<4x6xf32>, @s0, [{}, {}]>
  par.return %ra, %rb, %rc : !par.dist<tensor<4x6xf32>, @s0, [{}, {}]>, !par.dist<tensor<4x6xf32>, @s0, [{}, {}]>, !par.dist<tensor<4x6xf32>, @s0, [{}, {}]>
}
