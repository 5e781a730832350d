// Four stages and eight microbatches under 1f1b keep 4, 3, 2 and 1 microbatches in flight, under gpipe 8 each.
// RUN: par-opt %s --par-build-programs=schedule=1f1b --par-verify-schedule | FileCheck %s
// RUN: par-opt %s --par-build-programs=schedule=gpipe --par-verify-schedule | FileCheck %s --check-prefix=GPIPE
// RUN: not par-opt %s --par-build-programs=schedule=zigzag 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not par-opt %s --par-build-programs=hardware=abacus 2>&1 | FileCheck %s --check-prefix=HARDWARE

// CHECK: par.buffer @train.forward.1 temp by microbatch depth 4
// CHECK: par.buffer @train.forward.1 temp by microbatch depth 3
// CHECK: par.buffer @train.forward.1 temp by microbatch depth 2
// CHECK: par.buffer @train.forward.1 temp by microbatch : tensor<64xf32>
// GPIPE-COUNT-4: par.buffer @train.forward.1 temp by microbatch depth 8
// UNKNOWN: unknown schedule 'zigzag'; there are auto, gpipe, interleaved, 1f1b
// HARDWARE: abacus

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.stage @s2 <> ranks [2]
par.stage @s3 <> ranks [3]
par.fragment @train.s0.forward(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.exp %x : tensor<64xf32>
  %1 = par.tanh %x : tensor<64xf32>
  par.return %0, %1 : tensor<64xf32>, tensor<64xf32>
}
par.fragment @train.s0.backward(%g: tensor<64xf32>, %r: tensor<64xf32>) -> tensor<64xf32> attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  %0 = par.multiply %g, %r : tensor<64xf32>
  par.return %0 : tensor<64xf32>
}
par.fragment @train.s1.forward(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {stage = @s1, kind = #par.fragment_kind<forward>, local} {
  %0 = par.exp %x : tensor<64xf32>
  %1 = par.tanh %x : tensor<64xf32>
  par.return %0, %1 : tensor<64xf32>, tensor<64xf32>
}
par.fragment @train.s1.backward(%g: tensor<64xf32>, %r: tensor<64xf32>) -> tensor<64xf32> attributes {stage = @s1, kind = #par.fragment_kind<backward>, local} {
  %0 = par.multiply %g, %r : tensor<64xf32>
  par.return %0 : tensor<64xf32>
}
par.fragment @train.s2.forward(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {stage = @s2, kind = #par.fragment_kind<forward>, local} {
  %0 = par.exp %x : tensor<64xf32>
  %1 = par.tanh %x : tensor<64xf32>
  par.return %0, %1 : tensor<64xf32>, tensor<64xf32>
}
par.fragment @train.s2.backward(%g: tensor<64xf32>, %r: tensor<64xf32>) -> tensor<64xf32> attributes {stage = @s2, kind = #par.fragment_kind<backward>, local} {
  %0 = par.multiply %g, %r : tensor<64xf32>
  par.return %0 : tensor<64xf32>
}
par.fragment @train.s3.forward(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {stage = @s3, kind = #par.fragment_kind<forward>, local} {
  %0 = par.exp %x : tensor<64xf32>
  %1 = par.tanh %x : tensor<64xf32>
  par.return %0, %1 : tensor<64xf32>, tensor<64xf32>
}
par.fragment @train.s3.backward(%g: tensor<64xf32>, %r: tensor<64xf32>) -> tensor<64xf32> attributes {stage = @s3, kind = #par.fragment_kind<backward>, local} {
  %0 = par.multiply %g, %r : tensor<64xf32>
  par.return %0 : tensor<64xf32>
}
par.step @train(%x: !par.dist<tensor<8x64xf32>, @s0, [{}, {}]>) -> !par.dist<tensor<64xf32>, @s0, [{}]> attributes {inputs = ["x"], outputs = ["g"]} {
  %l = par.loop 8 (%x) : (!par.dist<tensor<8x64xf32>, @s0, [{}, {}]>) -> !par.dist<tensor<64xf32>, @s0, [{}]> {
  ^bb0(%i: tensor<i64>, %x0: !par.dist<tensor<64xf32>, @s0, [{}]>):
    %y0, %r0 = par.run @train.s0.forward(%x0) : (!par.dist<tensor<64xf32>, @s0, [{}]>) -> (!par.dist<tensor<64xf32>, @s0, [{}]>, !par.dist<tensor<64xf32>, @s0, [{}]>)
    %x1 = par.transfer %y0 : !par.dist<tensor<64xf32>, @s0, [{}]> to !par.dist<tensor<64xf32>, @s1, [{}]>
    %y1, %r1 = par.run @train.s1.forward(%x1) : (!par.dist<tensor<64xf32>, @s1, [{}]>) -> (!par.dist<tensor<64xf32>, @s1, [{}]>, !par.dist<tensor<64xf32>, @s1, [{}]>)
    %x2 = par.transfer %y1 : !par.dist<tensor<64xf32>, @s1, [{}]> to !par.dist<tensor<64xf32>, @s2, [{}]>
    %y2, %r2 = par.run @train.s2.forward(%x2) : (!par.dist<tensor<64xf32>, @s2, [{}]>) -> (!par.dist<tensor<64xf32>, @s2, [{}]>, !par.dist<tensor<64xf32>, @s2, [{}]>)
    %x3 = par.transfer %y2 : !par.dist<tensor<64xf32>, @s2, [{}]> to !par.dist<tensor<64xf32>, @s3, [{}]>
    %y3, %r3 = par.run @train.s3.forward(%x3) : (!par.dist<tensor<64xf32>, @s3, [{}]>) -> (!par.dist<tensor<64xf32>, @s3, [{}]>, !par.dist<tensor<64xf32>, @s3, [{}]>)
    %d3 = par.run @train.s3.backward(%y3, %r3) : (!par.dist<tensor<64xf32>, @s3, [{}]>, !par.dist<tensor<64xf32>, @s3, [{}]>) -> !par.dist<tensor<64xf32>, @s3, [{}]>
    %g2 = par.transfer %d3 : !par.dist<tensor<64xf32>, @s3, [{}]> to !par.dist<tensor<64xf32>, @s2, [{}]>
    %d2 = par.run @train.s2.backward(%g2, %r2) : (!par.dist<tensor<64xf32>, @s2, [{}]>, !par.dist<tensor<64xf32>, @s2, [{}]>) -> !par.dist<tensor<64xf32>, @s2, [{}]>
    %g1 = par.transfer %d2 : !par.dist<tensor<64xf32>, @s2, [{}]> to !par.dist<tensor<64xf32>, @s1, [{}]>
    %d1 = par.run @train.s1.backward(%g1, %r1) : (!par.dist<tensor<64xf32>, @s1, [{}]>, !par.dist<tensor<64xf32>, @s1, [{}]>) -> !par.dist<tensor<64xf32>, @s1, [{}]>
    %g0 = par.transfer %d1 : !par.dist<tensor<64xf32>, @s1, [{}]> to !par.dist<tensor<64xf32>, @s0, [{}]>
    %d0 = par.run @train.s0.backward(%g0, %r0) : (!par.dist<tensor<64xf32>, @s0, [{}]>, !par.dist<tensor<64xf32>, @s0, [{}]>) -> !par.dist<tensor<64xf32>, @s0, [{}]>
    par.yield [sum] %d0 : !par.dist<tensor<64xf32>, @s0, [{}]>
  }
  par.return %l : !par.dist<tensor<64xf32>, @s0, [{}]>
}
