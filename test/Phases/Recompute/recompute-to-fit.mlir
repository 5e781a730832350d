// The cheapest values by which ranks hold fewer bytes, and their time. Each of three values takes 256 KiB in each of
// two microbatches in flight; all are the outcome of a short dot, and the first is summed over ranks.
// DEFINE: %{to} = schedule=gpipe remarks excess=s0
// RUN: par-opt %s '--par-recompute-to-fit=%{to}=1' --par-verify-recompute 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: par-opt %s '--par-recompute-to-fit=%{to}=300000' --par-verify-recompute 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: par-opt %s '--par-recompute-to-fit=%{to}=600000' --par-verify-recompute 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: par-opt %s '--par-recompute-to-fit=%{to}=9000000' --par-verify-recompute 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: par-opt %s '--par-recompute-to-fit=%{to}=300000 moves hardware=h100-sxm' --par-verify-recompute 2>&1 \
// RUN:   | FileCheck %s --check-prefix=MOVE
// RUN: par-opt %s '--par-recompute-to-fit=%{to}=1100000 moves' 2>&1 | FileCheck %s --check-prefix=BUSY
// RUN: par-opt %s '--par-recompute-to-fit=%{to}=0' -o %t.front 2>&1 | FileCheck %s --check-prefix=FRONT
// RUN: par-opt %s -o %t.same && cmp %t.front %t.same
// RUN: par-opt %s --par-check-phases='passes=par-recompute-to-fit{schedule=gpipe excess=s0=600000}' > /dev/null
// RUN: par-opt %s --par-recompute-to-fit=remarks 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not par-opt %s --par-recompute-to-fit=excess=s0 2>&1 | FileCheck %s --check-prefix=EXCESS
// RUN: not par-opt %s --par-recompute-to-fit=hardware=abacus 2>&1 | FileCheck %s --check-prefix=HARDWARE

// ONE: remark: s0 saves 1048576 of 1572864 bytes, recomputes [[N:[0-9]+]] ns, at least [[N]] ns; 262144 bytes
// ONE-LABEL: par.fragment @train.s0.forward
// ONE: %[[SUM:.*]] = par.all_reduce
// ONE: par.return %[[SUM]],
// ONE-LABEL: par.fragment @train.s0.backward
// ONE-COUNT-1: -> tensor<256x256xf32>
// ONE-NOT: par.all_reduce

// The next one's input is saved instead, a sixteenth of its bytes.
// TWO: remark: s0 saves 557056 of 1572864 bytes, recomputes [[N:[0-9]+]] ns, at least [[N]] ns
// TWO-LABEL: par.fragment @train.s0.backward
// TWO-NOT: par.all_reduce
// TWO: par.return

// The sum over ranks is recomputed only if nothing cheaper is left.
// THREE: remark: s0 saves 32768 of 1572864 bytes, recomputes [[N:[0-9]+]] ns, at least [[N]] ns
// THREE-LABEL: par.fragment @train.s0.backward
// THREE: par.all_reduce

// ALL: remark: s0 saves 0 of 1572864 bytes, recomputes [[N:[0-9]+]] ns, at least [[N]] ns; no smaller choice was found

// For 0 bytes nothing is recomputed; these are choices of one microbatch at rising prices of a byte.
// FRONT: remark: s0 at 0.000061 ns a byte: saves 786432 bytes, recomputes 0 ns
// FRONT: remark: s0 at 0.125000 ns a byte: saves 262144 bytes, recomputes {{[1-9][0-9]*}} ns
// FRONT: remark: s0 at 256.000000 ns a byte: saves 0 bytes, recomputes {{[1-9][0-9]*}} ns

// Copies that compute hides cost nothing: nothing is recomputed, and a result of forward is marked.
// MOVE: remark: s0 saves 524288 of 1572864 bytes, moves 1048576 and loses 0 ns by it, recomputes 0 ns, at least 0 ns
// MOVE-LABEL: par.fragment @train.s0.forward
// MOVE-SAME: tensor<256x256xf32> {par.host}
// MOVE-LABEL: par.fragment @train.s0.backward
// MOVE-COUNT-3: par.dot
// MOVE-NOT: par.dot

// On a CPU they take longer than the dots and hold up compute; the sum over ranks is moved, which takes longer still.
// BUSY: remark: s0 saves 0 of 1572864 bytes, moves 524288 and loses {{[1-9][0-9]*}} ns by it,
// BUSY-SAME: recomputes [[N:[1-9][0-9]*]] ns, at least [[N]] ns
// BUSY-LABEL: par.fragment @train.s0.backward
// BUSY-NOT: par.all_reduce

// NONE-NOT: remark
// NONE-LABEL: par.fragment @train.s0.backward
// NONE-COUNT-3: par.dot
// NONE-NOT: par.dot

// EXCESS: error: excess is 's0', expected STAGE=BYTES
// HARDWARE: error: abacus: no hardware file of this name

!v = tensor<256x256xf32>
!b = tensor<16x16xf32>
par.stage @s0 <"tp"=2> ranks [0, 1]
par.variable @w parameter : tensor<16x256xf32>
par.variable @a parameter : tensor<16x16xf32>
par.fragment @train.s0.forward(%x: tensor<256x16xf32>, %w: tensor<16x256xf32>, %a: !b) -> (!v, !v, !v, !v)
    attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<256x16xf32>, tensor<16x256xf32>) -> tensor<256x256xf32>
  %1 = par.all_reduce sum %0 over ["tp"] : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %2 = par.dot %x, %w contracting [1] x [0] : (tensor<256x16xf32>, tensor<16x256xf32>) -> tensor<256x256xf32>
  %3 = par.dot %x, %a contracting [1] x [0] : (tensor<256x16xf32>, tensor<16x16xf32>) -> tensor<256x16xf32>
  %4 = par.dot %3, %w contracting [1] x [0] : (tensor<256x16xf32>, tensor<16x256xf32>) -> tensor<256x256xf32>
  %5 = par.add %1, %2 : tensor<256x256xf32>
  %6 = par.add %5, %4 : tensor<256x256xf32>
  par.return %1, %2, %4, %6 : tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>
}
par.fragment @train.s0.backward(%r0: !v, %r1: !v, %r2: !v, %x: tensor<256x16xf32>) -> tensor<16x256xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  %0 = par.dot %r2, %r1 contracting [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %1 = par.dot %0, %r0 contracting [0] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %2 = par.dot %x, %1 contracting [0] x [0] : (tensor<256x16xf32>, tensor<256x256xf32>) -> tensor<16x256xf32>
  par.return %2 : tensor<16x256xf32>
}
!r = !par.dist<tensor<256x256xf32>, @s0, [{}, {}]>
!x = !par.dist<tensor<256x16xf32>, @s0, [{}, {}]>
!w = !par.dist<tensor<16x256xf32>, @s0, [{}, {}]>
!a = !par.dist<tensor<16x16xf32>, @s0, [{}, {}]>
!xs = !par.dist<tensor<2x256x16xf32>, @s0, [{}, {}, {}]>
par.step @train(%x: !xs) -> (!w, !r) attributes {inputs = ["x"], outputs = ["g", "y"]} {
  %w = par.read @w : !w
  %a = par.read @a : !a
  %g, %s = par.loop 2 (%x) {labels = ["w", ""]} : (!xs) -> (!w, !r) {
  ^bb0(%i: tensor<i64>, %xi: !x):
    %r0, %r1, %r2, %y = par.run @train.s0.forward(%xi, %w, %a) : (!x, !w, !a) -> (!r, !r, !r, !r)
    %d = par.run @train.s0.backward(%r0, %r1, %r2, %xi) : (!r, !r, !r, !x) -> !w
    par.yield [sum, sum] %d, %y : !w, !r
  }
  par.write %g to @w : !w
  par.return %g, %s : !w, !r
}
