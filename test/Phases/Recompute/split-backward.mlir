// Backward in two parts if the schedule has slots of weight gradients: values for which another stage waits, and sums.
// RUN: par-opt %s --par-split-backward=schedule=zb-h1 --par-verify-recompute | FileCheck %s
// RUN: par-opt %s \
// RUN:   --par-check-phases='passes=par-split-backward{schedule=zb-h1},par-build-programs{schedule=zb-h1},par-verify-schedule' \
// RUN:   > /dev/null
// RUN: par-opt %s --par-split-backward=schedule=1f1b | FileCheck %s --check-prefix=WHOLE
// RUN: par-opt %s --par-split-backward=schedule=zb-h1 --par-build-programs=schedule=zb-h1 --par-verify-schedule \
// RUN:   | FileCheck %s --check-prefix=PROGRAM

// Nobody waits for the first stage's.
// CHECK: par.fragment @train.s0.weight(
// CHECK-SAME: kind = #par.fragment_kind<weight>
// CHECK: par.fragment @train.s1.backward(%[[G:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
// CHECK-NEXT: %[[Z:.*]] = par.dot %[[G]], %[[W]]
// CHECK-NEXT: %[[D:.*]] = par.dot %[[Z]], %[[W]]
// CHECK-NEXT: par.return %[[D]], %[[Z]]
// Values that fuse are recomputed, others are passed.
// CHECK: par.fragment @train.s1.weight(%[[X:.*]]: tensor<4x8xf32>, %[[Z:.*]]: tensor<4x8xf32>) -> tensor<8x8xf32>
// CHECK-SAME: kind = #par.fragment_kind<weight>
// CHECK-NEXT: %[[T:.*]] = par.tanh %[[X]]
// CHECK-NEXT: par.dot %[[T]], %[[Z]]
// CHECK: %[[B:.*]]:2 = par.run @train.s1.backward
// CHECK-SAME: !par.dist<tensor<4x8xf32>, @s1, [{}, {}]>)
// CHECK: par.run @train.s1.weight(%{{.*}}, %[[B]]#1)
// WHOLE-NOT: weight
// PROGRAM: par.entry @train runs {{.*}}@train.backward, {{.*}}@train.weight
!t0 = !par.dist<tensor<4x8xf32>, @s0, [{}, {}]>
!t1 = !par.dist<tensor<4x8xf32>, @s1, [{}, {}]>
!w0 = !par.dist<tensor<8x8xf32>, @s0, [{}, {}]>
!w1 = !par.dist<tensor<8x8xf32>, @s1, [{}, {}]>
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @w parameter : tensor<8x8xf32> at [!w1]
par.fragment @train.s0.forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.sin %x : tensor<4x8xf32>
  par.return %0 : tensor<4x8xf32>
}
par.fragment @train.s0.backward(%x: tensor<4x8xf32>, %g: tensor<4x8xf32>) -> tensor<8x8xf32> attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  %0 = par.dot %x, %g contracting [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  par.return %0 : tensor<8x8xf32>
}
par.fragment @train.s1.forward(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> attributes {stage = @s1, kind = #par.fragment_kind<forward>, local} {
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  par.return %0 : tensor<4x8xf32>
}
par.fragment @train.s1.backward(%x: tensor<4x8xf32>, %g: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32>) attributes {stage = @s1, kind = #par.fragment_kind<backward>, local} {
  %t = par.tanh %x : tensor<4x8xf32>
  %z = par.dot %g, %w contracting [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %d = par.dot %z, %w contracting [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s = par.dot %t, %z contracting [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  par.return %s, %d : tensor<8x8xf32>, tensor<4x8xf32>
}
par.step @train(%x: !par.dist<tensor<3x4x8xf32>, @s0, [{}, {}, {}]>) -> (!w0, !w1) attributes {inputs = ["x"], outputs = ["a", "b"]} {
  %w = par.read @w : !w1
  %a, %b = par.loop 3 (%x) : (!par.dist<tensor<3x4x8xf32>, @s0, [{}, {}, {}]>) -> (!w0, !w1) {
  ^bb0(%i: tensor<i64>, %x0: !t0):
    %y0 = par.run @train.s0.forward(%x0) : (!t0) -> !t0
    %x1 = par.transfer %y0 : !t0 to !t1
    %y1 = par.run @train.s1.forward(%x1, %w) : (!t1, !w1) -> !t1
    %s1, %d1 = par.run @train.s1.backward(%x1, %y1, %w) : (!t1, !t1, !w1) -> (!w1, !t1)
    %g0 = par.transfer %d1 : !t1 to !t0
    %s0 = par.run @train.s0.backward(%x0, %g0) : (!t0, !t0) -> !w0
    par.yield [sum, sum] %s0, %s1 : !w0, !w1
  }
  par.return %a, %b : !w0, !w1
}
