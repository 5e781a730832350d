// A weight that a matmul reads in bf16 is kept for backward with one microbatch in flight, and converted again with
// several.
// RUN: par-opt %s --par-recompute-values=keep-operands --par-verify-recompute=keep-operands | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-recompute-values{keep-operands},par-build-programs,par-verify-schedule' > /dev/null

// Stage 0 has two in flight: the matmul's own input is saved, the weight is not.
// CHECK-LABEL: par.fragment @train.s0.forward
// CHECK: par.return %{{[^,]*}}, %{{[^,]*}} : tensor<64x64xf32>, tensor<64x64xbf16>
// CHECK-LABEL: par.fragment @train.s0.backward
// CHECK-COUNT-1: par.convert {{.*}} : tensor<64x64xf32> to tensor<64x64xbf16>
// CHECK-NOT: par.convert {{.*}} to tensor<64x64xbf16>
// The last stage has one.
// CHECK-LABEL: par.fragment @train.s1.forward
// CHECK: par.return %{{[^,]*}}, %{{[^,]*}} : tensor<64x64xf32>, tensor<64x64xbf16>
// CHECK-LABEL: par.fragment @train.s1.backward
// CHECK-NOT: to tensor<64x64xbf16>

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @w parameter : tensor<64x64xf32>
par.variable @v parameter : tensor<64x64xf32>
par.fragment @train.s0.forward(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xbf16>, tensor<64x64xbf16>)
    attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.exp %x : tensor<64x64xf32>
  %1 = par.convert %0 : tensor<64x64xf32> to tensor<64x64xbf16>
  %2 = par.convert %w : tensor<64x64xf32> to tensor<64x64xbf16>
  %3 = par.dot %1, %2 contracting [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  par.return %3, %1, %2 : tensor<64x64xf32>, tensor<64x64xbf16>, tensor<64x64xbf16>
}
par.fragment @train.s0.backward(%g: tensor<64x64xf32>, %x: tensor<64x64xbf16>, %w: tensor<64x64xbf16>) -> tensor<64x64xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  %0 = par.dot %x, %w contracting [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %1 = par.multiply %0, %g : tensor<64x64xf32>
  par.return %1 : tensor<64x64xf32>
}
par.fragment @train.s1.forward(%x: tensor<64x64xf32>, %v: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xbf16>)
    attributes {stage = @s1, kind = #par.fragment_kind<forward>, local} {
  %0 = par.convert %v : tensor<64x64xf32> to tensor<64x64xbf16>
  %1 = par.convert %x : tensor<64x64xf32> to tensor<64x64xbf16>
  %2 = par.dot %1, %0 contracting [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  par.return %2, %0 : tensor<64x64xf32>, tensor<64x64xbf16>
}
par.fragment @train.s1.backward(%y: tensor<64x64xf32>, %v: tensor<64x64xbf16>) -> tensor<64x64xf32>
    attributes {stage = @s1, kind = #par.fragment_kind<backward>, local} {
  %0 = par.dot %v, %v contracting [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %1 = par.multiply %y, %0 : tensor<64x64xf32>
  par.return %1 : tensor<64x64xf32>
}
!t0 = !par.dist<tensor<64x64xf32>, @s0, [{}, {}]>
!h0 = !par.dist<tensor<64x64xbf16>, @s0, [{}, {}]>
!t1 = !par.dist<tensor<64x64xf32>, @s1, [{}, {}]>
!h1 = !par.dist<tensor<64x64xbf16>, @s1, [{}, {}]>
par.step @train(%x: !par.dist<tensor<3x64x64xf32>, @s0, [{}, {}, {}]>) -> (!t0, !t1) attributes {inputs = ["x"], outputs = ["g", "l"]} {
  %w = par.read @w : !t0
  %v = par.read @v : !t1
  %g, %l = par.loop 3 (%x) {labels = ["w", ""]} : (!par.dist<tensor<3x64x64xf32>, @s0, [{}, {}, {}]>) -> (!t0, !t1) {
  ^bb0(%i: tensor<i64>, %xi: !t0):
    %y, %r0, %r1 = par.run @train.s0.forward(%xi, %w) : (!t0, !t0) -> (!t0, !h0, !h0)
    %y1 = par.transfer %y : !t0 to !t1
    %z, %r2 = par.run @train.s1.forward(%y1, %v) : (!t1, !t1) -> (!t1, !h1)
    %d1 = par.run @train.s1.backward(%z, %r2) : (!t1, !h1) -> !t1
    %d = par.transfer %d1 : !t1 to !t0
    %d0 = par.run @train.s0.backward(%d, %r0, %r1) : (!t0, !h0, !h0) -> !t0
    par.yield [sum, sum] %d0, %z : !t0, !t1
  }
  par.write %g to @w : !t0
  par.return %g, %l : !t0, !t1
}
