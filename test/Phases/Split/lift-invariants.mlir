// Values that depend only on variables are computed once a step, if that is worth its memory; equal ones once.
// RUN: par-opt %s --par-lift-invariants=min-bytes=64 --split-input-file | FileCheck %s
// RUN: par-opt %s --par-lift-invariants --split-input-file | FileCheck %s --check-prefix=SMALL
// RUN: par-opt %s --par-lift-invariants='min-bytes=64 max-bytes=200' --split-input-file | FileCheck %s --check-prefix=SMALL
// RUN: par-opt %s --par-lift-invariants='max-bytes=1 masters=64' --split-input-file \
// RUN:   | FileCheck %s --check-prefix=MASTERS
// RUN: par-opt %s --split-input-file --par-check-phases='passes=par-lift-invariants{min-bytes=64},par-form-fragments'

// Both uses of the rounded weight read the one before the loop; the bias is broadcast at its use, and a sum of
// loop-invariant values stays in the loop.
// CHECK-LABEL: par.step @train
// CHECK: %[[W:.*]] = par.read @w
// CHECK: %[[C:.*]] = par.convert %[[W]]
// CHECK-NOT: par.convert
// CHECK: %[[S:.*]] = par.exp %[[C]]
// CHECK-NOT: par.broadcast
// CHECK: par.loop 2
// CHECK-NOT: par.convert %[[W]]
// CHECK: par.dot %{{.*}}, %[[C]]
// CHECK: par.transpose %[[S]]
// CHECK: par.broadcast_in_dim
// CHECK: par.negate
// SMALL-LABEL: par.step @train
// SMALL: par.loop
// SMALL: par.convert
// Masters are rounded before the loop, however much or little that is; nothing else of so many bytes is made there.
// MASTERS-LABEL: par.step @train
// MASTERS: %[[M:.*]] = par.read @w
// MASTERS: %[[R:.*]] = par.convert %[[M]]
// MASTERS-NOT: par.exp
// MASTERS: par.loop 2
// MASTERS-NOT: par.convert %[[M]]
// MASTERS: par.dot %{{.*}}, %[[R]]
par.stage @s0 <> ranks [0]
par.variable @w parameter : tensor<8x8xf32>
par.variable @b parameter : tensor<8xf32>
par.step @train(%x: tensor<2x4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
  %w = par.read @w : tensor<8x8xf32>
  %b = par.read @b : tensor<8xf32>
  %r, %n = par.loop 2 (%x) : (tensor<2x4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
  ^bb0(%i: tensor<i64>, %xi: tensor<4x8xf32>):
    %xb = par.convert %xi {stage = 0 : i64} : tensor<4x8xf32> to tensor<4x8xbf16>
    %w1 = par.convert %w {stage = 0 : i64} : tensor<8x8xf32> to tensor<8x8xbf16>
    %h = par.dot %xb, %w1 contracting [1] x [0] {stage = 0 : i64} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %w2 = par.convert %w {stage = 0 : i64} : tensor<8x8xf32> to tensor<8x8xbf16>
    %w3 = par.exp %w2 {stage = 0 : i64} : tensor<8x8xbf16>
    %w4 = par.transpose %w3 [1, 0] {stage = 0 : i64} : tensor<8x8xbf16> to tensor<8x8xbf16>
    %y = par.dot %h, %w4 contracting [1] x [0] {stage = 0 : i64} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %f = par.convert %y {stage = 0 : i64} : tensor<4x8xbf16> to tensor<4x8xf32>
    %e = par.exp %b {stage = 0 : i64} : tensor<8xf32>
    %s = par.broadcast_in_dim %e dims [1] {stage = 0 : i64} : tensor<8xf32> to tensor<4x8xf32>
    %t = par.add %f, %s {stage = 0 : i64} : tensor<4x8xf32>
    %m = par.negate %w {stage = 0 : i64} : tensor<8x8xf32>
    par.yield [sum, sum] %t, %m : tensor<4x8xf32>, tensor<8x8xf32>
  }
  par.return %r, %n : tensor<4x8xf32>, tensor<8x8xf32>
}

// -----

// A loop that runs once and forward only stays as it is, and so does a value larger than its operands.
// CHECK-LABEL: par.step @predict
// CHECK: par.loop 1
// CHECK: par.exp
// CHECK-LABEL: par.step @grows
// CHECK: par.loop 2
// CHECK: par.broadcast_in_dim
// CHECK: par.exp
// In a loop that runs once, too: what is small, or no parameter, is rounded where it is used.
// MASTERS-LABEL: par.step @predict
// MASTERS: par.convert %{{.*}} : tensor<8x8xf64> to tensor<8x8xbf16>
// MASTERS: par.loop 1
// MASTERS-DAG: par.convert %{{.*}} : tensor<8xf64> to tensor<8xbf16>
// MASTERS-DAG: par.convert %{{.*}} : tensor<8x9xf64> to tensor<8x9xbf16>
par.stage @s0 <> ranks [0]
par.variable @w parameter : tensor<8xf64>
par.variable @master parameter : tensor<8x8xf64>
par.variable @still frozen : tensor<8x9xf64>
par.step @predict(%x: tensor<1x8xf64>) -> (tensor<8xf64>, tensor<8xbf16>, tensor<8x8xbf16>, tensor<8x9xbf16>) {
  %w = par.read @w : tensor<8xf64>
  %m = par.read @master : tensor<8x8xf64>
  %f = par.read @still : tensor<8x9xf64>
  %r:4 = par.loop 1 (%x) : (tensor<1x8xf64>) -> (tensor<8xf64>, tensor<8xbf16>, tensor<8x8xbf16>, tensor<8x9xbf16>) {
  ^bb0(%i: tensor<i64>, %xi: tensor<8xf64>):
    %e = par.exp %w {stage = 0 : i64} : tensor<8xf64>
    %y = par.multiply %xi, %e {stage = 0 : i64} : tensor<8xf64>
    %small = par.convert %w {stage = 0 : i64} : tensor<8xf64> to tensor<8xbf16>
    %low = par.convert %m {stage = 0 : i64} : tensor<8x8xf64> to tensor<8x8xbf16>
    %a = par.negate %small {stage = 0 : i64} : tensor<8xbf16>
    %b = par.negate %low {stage = 0 : i64} : tensor<8x8xbf16>
    %c = par.convert %f {stage = 0 : i64} : tensor<8x9xf64> to tensor<8x9xbf16>
    %d = par.negate %c {stage = 0 : i64} : tensor<8x9xbf16>
    par.yield [sum, sum, sum, sum] %y, %a, %b, %d : tensor<8xf64>, tensor<8xbf16>, tensor<8x8xbf16>, tensor<8x9xbf16>
  }
  par.return %r#0, %r#1, %r#2, %r#3 : tensor<8xf64>, tensor<8xbf16>, tensor<8x8xbf16>, tensor<8x9xbf16>
}
par.step @grows(%x: tensor<2x4x8xf64>) -> tensor<4x8xf64> {
  %w = par.read @w : tensor<8xf64>
  %r = par.loop 2 (%x) : (tensor<2x4x8xf64>) -> tensor<4x8xf64> {
  ^bb0(%i: tensor<i64>, %xi: tensor<4x8xf64>):
    %s = par.broadcast_in_dim %w dims [1] {stage = 0 : i64} : tensor<8xf64> to tensor<4x8xf64>
    %e = par.exp %s {stage = 0 : i64} : tensor<4x8xf64>
    %y = par.multiply %xi, %e {stage = 0 : i64} : tensor<4x8xf64>
    par.yield [sum] %y : tensor<4x8xf64>
  }
  par.return %r : tensor<4x8xf64>
}
