// A value that tensor ranks hold alike crosses in parts, on the first dim that the axis divides.
// RUN: par-opt %s --par-scatter-transfers --split-input-file | FileCheck %s

// Two rows a shard; the next stage hands the part on.
// CHECK-LABEL: par.step @rows
// CHECK: %[[P:.*]] = par.reshard %{{.*}} to <tensor<8x4xf32>, @s0, [{"dp", "tp"}, {}]>
// CHECK-NEXT: %[[T:.*]] = par.transfer %[[P]] {{.*}} to <tensor<8x4xf32>, @s1, [{"dp", "tp"}, {}]>
// CHECK-NEXT: par.reshard %[[T]] {{.*}} to <tensor<8x4xf32>, @s1, [{"dp"}, {}]>
// CHECK-NEXT: %[[U:.*]] = par.transfer %[[T]] {{.*}} to <tensor<8x4xf32>, @s2, [{"dp", "tp"}, {}]>
// CHECK-NEXT: %[[W:.*]] = par.reshard %[[U]] {{.*}} to <tensor<8x4xf32>, @s2, [{"dp"}, {}]>
// CHECK-NEXT: par.yield [stack] %[[W]]
par.stage @s0 <"dp"=2, "tp"=2> ranks [0, 1, 2, 3]
par.stage @s1 <"dp"=2, "tp"=2> ranks [4, 5, 6, 7]
par.stage @s2 <"dp"=2, "tp"=2> ranks [8, 9, 10, 11]
par.step @rows(%x: !par.dist<tensor<2x8x4xf32>, @s0, [{}, {"dp"}, {}]>) {
  %l = par.loop 2 (%x) : (!par.dist<tensor<2x8x4xf32>, @s0, [{}, {"dp"}, {}]>)
      -> (!par.dist<tensor<2x8x4xf32>, @s2, [{}, {"dp"}, {}]>) {
  ^bb0(%i: tensor<i64>, %a: !par.dist<tensor<8x4xf32>, @s0, [{"dp"}, {}]>):
    %b = par.transfer %a : <tensor<8x4xf32>, @s0, [{"dp"}, {}]> to <tensor<8x4xf32>, @s1, [{"dp"}, {}]>
    %c = par.transfer %b : <tensor<8x4xf32>, @s1, [{"dp"}, {}]> to <tensor<8x4xf32>, @s2, [{"dp"}, {}]>
    par.yield [stack] %c : !par.dist<tensor<8x4xf32>, @s2, [{"dp"}, {}]>
  }
  par.return
}

// -----

// One row is not cut, the dim after it is. Outside the loops, and between stages of different meshes, nothing changes.
// CHECK-LABEL: par.step @columns
// CHECK: par.transfer {{.*}} : <tensor<4xf32>, @s0, [{}]> to <tensor<4xf32>, @s1, [{}]>
// CHECK: par.reshard %{{.*}} : <tensor<1x4xf32>, @s0, [{}, {}]> to <tensor<1x4xf32>, @s0, [{}, {"tp"}]>
// CHECK: par.transfer {{.*}} to <tensor<1x4xf32>, @s2, [{}, {}]>
// CHECK: par.return
par.stage @s0 <"tp"=2> ranks [0, 1]
par.stage @s1 <"tp"=2> ranks [2, 3]
par.stage @s2 <> ranks [4]
par.step @columns(%x: !par.dist<tensor<2x1x4xf32>, @s0, [{}, {}, {}]>, %y: !par.dist<tensor<4xf32>, @s0, [{}]>) {
  %z = par.transfer %y : <tensor<4xf32>, @s0, [{}]> to <tensor<4xf32>, @s1, [{}]>
  %l:2 = par.loop 2 (%x) : (!par.dist<tensor<2x1x4xf32>, @s0, [{}, {}, {}]>)
      -> (!par.dist<tensor<2x1x4xf32>, @s1, [{}, {}, {}]>, !par.dist<tensor<2x1x4xf32>, @s2, [{}, {}, {}]>) {
  ^bb0(%i: tensor<i64>, %a: !par.dist<tensor<1x4xf32>, @s0, [{}, {}]>):
    %b = par.transfer %a : <tensor<1x4xf32>, @s0, [{}, {}]> to <tensor<1x4xf32>, @s1, [{}, {}]>
    %c = par.transfer %a : <tensor<1x4xf32>, @s0, [{}, {}]> to <tensor<1x4xf32>, @s2, [{}, {}]>
    par.yield [stack, stack] %b, %c
        : !par.dist<tensor<1x4xf32>, @s1, [{}, {}]>, !par.dist<tensor<1x4xf32>, @s2, [{}, {}]>
  }
  par.return
}
