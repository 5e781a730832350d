// Each mode saves its values, every mode computes the same, and no unused value is computed.
// RUN: par-opt %s --par-recompute-values=mode=none --par-verify-recompute | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: par-opt %s --par-recompute-values=mode=full --par-verify-recompute | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: par-opt %s '--par-recompute-values=mode=each patterns=h.*' --par-verify-recompute \
// RUN:   | FileCheck %s --check-prefixes=CHECK,EACH
// RUN: par-opt %s '--par-recompute-values=mode=full schedule=gpipe' --par-verify-recompute \
// RUN:   | FileCheck %s --check-prefixes=GPIPE
// RUN: par-opt %s \
// RUN:   --par-check-phases='passes=par-recompute-values{mode=none},par-recompute-values{mode=full}' > /dev/null
// RUN: par-opt %s --par-check-phases='passes=par-recompute-values{mode=each patterns=h.0},par-build-programs,par-verify-schedule' > /dev/null
// RUN: par-opt %S/../Propagate/Inputs/two-stages.mlir --par-slice-microbatches=microbatches=4 --par-assign-stages --par-form-fragments --par-propagate-shardings=batch-axes=dp --par-partition-fragments --par-check-phases='passes=par-recompute-values{mode=full},par-verify-recompute,par-build-programs,par-verify-schedule' > /dev/null
// RUN: sed 's/4x4/64x64/g' %s | par-opt --par-recompute-values=keep-operands --par-verify-recompute=keep-operands | FileCheck %s --check-prefix=KEEP
// RUN: sed 's/4x4/64x64/g' %s | par-opt --par-recompute-values=keep-operands | not par-opt --par-verify-recompute 2>&1 | FileCheck %s --check-prefix=GATE
// RUN: not par-opt %s --par-recompute-values=mode=some 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not par-opt %s '--par-recompute-values=mode=each patterns=h.{' 2>&1 | FileCheck %s --check-prefix=PATTERN

// MODE: recompute mode is 'some', expected none, full, selective, each, values or keep
// PATTERN: pattern 'h.{':

// The exponential follows from the matmul by an op that fuses, and only the matmul is saved; the transpose is only
// moved to its users.
// NONE-LABEL: par.fragment @train.s0.forward
// NONE: par.return %{{[^,]*}}, %{{[^,]*}} : tensor<4x4xf32>, tensor<4x4xf32>
// NONE-LABEL: par.fragment @train.s0.backward
// NONE-NOT: par.all_reduce
// NONE: par.exp
// NONE: par.transpose

// An operand of a large matmul of forward is saved.
// KEEP-LABEL: par.fragment @train.s0.forward
// KEEP: %[[P:.*]] = par.dot
// KEEP: %[[P:.*]] = par.dot
// KEEP: %[[E:.*]] = par.exp
// KEEP: par.return %{{[^,]*}}, %[[E]], %[[P]] : tensor<64x64xf32>
// KEEP-LABEL: par.fragment @train.s0.backward
// KEEP-NOT: par.exp
// KEEP: par.return
// GATE: error: saves a value for the backward that costs nothing to compute

// Nothing but the arguments, the first all-reduce again in the backward, the last one not.
// FULL-LABEL: par.fragment @train.s0.forward
// FULL: par.return %{{[0-9]+}} : tensor<4x4xf32>
// FULL-LABEL: par.fragment @train.s0.backward
// FULL: par.all_reduce
// FULL-NOT: par.all_reduce
// FULL-LABEL: par.fragment @train.s1.forward
// The last stage never has two microbatches in flight under 1f1b; under gpipe it has all.
// FULL: par.return %{{[^,]*}}, %{{[^,]*}} : tensor<4x4xf32>, tensor<4x4xf32>
// GPIPE-LABEL: par.fragment @train.s1.forward
// GPIPE: par.return %{{[^,]*}} : tensor<4x4xf32>

// The input of h.1 is saved; values inside are recomputed.
// EACH-LABEL: par.fragment @train.s0.forward
// EACH: par.return %{{[^,]*}}, %{{[^,]*}} : tensor<4x4xf32>, tensor<4x4xf32>
// EACH-LABEL: par.fragment @train.s0.backward
// EACH-NOT: par.all_reduce
// EACH-COUNT-2: par.dot {{.*}} contracting [1] x [0]
// EACH: par.return

#h0 = loc(fused<{module = "h.0.mlp", node = "n0", path = "h.0.mlp/MatMul"}>["m.py":1:0])
#h1 = loc(fused<{module = "h.1.mlp", node = "n1", path = "h.1.mlp/MatMul"}>["m.py":2:0])

par.stage @s0 <"tp"=2> ranks [0, 1]
par.stage @s1 <"tp"=2> ranks [2, 3]
par.variable @w parameter : tensor<4x4xf32>
par.fragment @train.s0.forward(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>)
    attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc(#h0)
  %1 = par.all_reduce max %0 over ["tp"] : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#h0)
  %2 = par.dot %1, %w contracting [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc(#h1)
  %3 = par.exp %2 : tensor<4x4xf32> loc(#h1)
  %4 = par.transpose %2 [1, 0] : tensor<4x4xf32> to tensor<4x4xf32> loc(#h1)
  %5 = par.dot %3, %w contracting [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc(#h1)
  %6 = par.all_reduce max %5 over ["tp"] : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#h1)
  par.return %6, %3, %4, %2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
par.fragment @train.s0.backward(%g: tensor<4x4xf32>, %r0: tensor<4x4xf32>, %r1: tensor<4x4xf32>, %r2: tensor<4x4xf32>) -> tensor<4x4xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  %0 = par.multiply %g, %r0 : tensor<4x4xf32>
  %1 = par.dot %0, %r1 contracting [0] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = par.add %1, %r2 : tensor<4x4xf32>
  par.return %2 : tensor<4x4xf32>
}
par.fragment @train.s1.forward(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    attributes {stage = @s1, kind = #par.fragment_kind<forward>, local} {
  %0 = par.dot %x, %x contracting [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = par.tanh %0 : tensor<4x4xf32>
  par.return %1, %0 : tensor<4x4xf32>, tensor<4x4xf32>
}
par.fragment @train.s1.backward(%y: tensor<4x4xf32>, %r: tensor<4x4xf32>) -> tensor<4x4xf32>
    attributes {stage = @s1, kind = #par.fragment_kind<backward>, local} {
  %0 = par.multiply %y, %r : tensor<4x4xf32>
  par.return %0 : tensor<4x4xf32>
}
!t0 = !par.dist<tensor<4x4xf32>, @s0, [{}, {}]>
!t1 = !par.dist<tensor<4x4xf32>, @s1, [{}, {}]>
par.step @train(%x: !par.dist<tensor<3x4x4xf32>, @s0, [{}, {}, {}]>) -> (!t0, !t1) attributes {inputs = ["x"], outputs = ["g", "l"]} {
  %w = par.read @w : !t0
  // CHECK: par.loop 3
  %g, %l = par.loop 3 (%x) {labels = ["w", ""]} : (!par.dist<tensor<3x4x4xf32>, @s0, [{}, {}, {}]>) -> (!t0, !t1) {
  ^bb0(%i: tensor<i64>, %xi: !t0):
    %y, %r0, %r1, %r2 = par.run @train.s0.forward(%xi, %w) : (!t0, !t0) -> (!t0, !t0, !t0, !t0)
    %y1 = par.transfer %y : !t0 to !t1
    %z, %r3 = par.run @train.s1.forward(%y1) : (!t1) -> (!t1, !t1)
    %d1 = par.run @train.s1.backward(%z, %r3) : (!t1, !t1) -> !t1
    %d = par.transfer %d1 : !t1 to !t0
    %d0 = par.run @train.s0.backward(%d, %r0, %r1, %r2) : (!t0, !t0, !t0, !t0) -> !t0
    par.yield [sum, sum] %d0, %z : !t0, !t1
  }
  par.write %g to @w : !t0
  par.return %g, %l : !t0, !t1
}
