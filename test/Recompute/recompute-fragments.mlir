// Backward computes again what it is not to keep, from the arguments of forward or from what flows into a module.
// RUN: par-opt %s --par-recompute-fragments=mode=full --par-verify-recompute=mode=full | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: par-opt %s --par-recompute-fragments="mode=each each=h.*" --par-verify-recompute="mode=each each=h.*" \
// RUN:   | FileCheck %s --check-prefixes=CHECK,EACH
// RUN: par-opt %s --par-recompute-fragments=mode=none | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: not par-opt %s --par-recompute-fragments=mode=some 2>&1 | FileCheck %s --check-prefix=MODE

// MODE: error: mode is none, full or each, found "some"

par.stage @s0 <> ranks [0]
par.variable @w parameter : tensor<4xf32>

// The value outside of any module stays where it is with `each`; with `full` only the output is left.
// CHECK: par.fragment @f
// FULL-SAME: -> tensor<4xf32>
// EACH-SAME: -> (tensor<4xf32>, tensor<4xf32>)
// NONE-SAME: -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
par.fragment @f(%x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.exp %x : tensor<4xf32> loc(fused<{module = "wte", node = "n0", path = "wte/Exp"}>["m.py":1:0])
  %1 = par.tanh %0 : tensor<4xf32> loc(fused<{module = "h.0.mlp", node = "n1", path = "h.0.mlp/Tanh"}>["m.py":2:0])
  %2 = par.multiply %1, %w : tensor<4xf32> loc(fused<{module = "h.0", node = "n2", path = "h.0/Mul"}>["m.py":3:0])
  %3 = par.sqrt %x : tensor<4xf32>
  par.return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// Clones of the forward ops in their order, then what was there.
// CHECK: par.fragment @b
// FULL: par.exp
// FULL-NEXT: par.tanh
// FULL-NEXT: par.multiply
// EACH-NOT: par.exp
// EACH: par.tanh
// EACH-NEXT: par.multiply
// NONE-NOT: par.tanh
// CHECK: par.return
par.fragment @b(%d: tensor<4xf32>, %e: tensor<4xf32>, %t: tensor<4xf32>) -> tensor<4xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  %0 = par.multiply %d, %t : tensor<4xf32>
  %1 = par.add %0, %e : tensor<4xf32>
  par.return %1 : tensor<4xf32>
}
// CHECK: par.step
// FULL: %[[F:.*]] = par.run @f(
// FULL-NEXT: par.run @b(%[[X:[a-z0-9]+]], %{{[a-z0-9]+}})
// The output is made in the module and used by no other: backward computes it again, from what flows in.
// EACH: %[[F:.*]]:2 = par.run @f(
// EACH-NEXT: par.run @b(%[[F]]#0, %{{[a-z0-9]+}})
// NONE: %[[F:.*]]:3 = par.run @f(
// NONE-NEXT: par.run @b(%[[F]]#2, %[[F]]#0, %[[F]]#1)
par.step @train(%x: !par.dist<tensor<2x4xf32>, @s0, [{}, {} ]>) -> (!par.dist<tensor<4xf32>, @s0, [{} ]>, !par.dist<tensor<4xf32>, @s0, [{} ]>) {
  %w = par.read @w : !par.dist<tensor<4xf32>, @s0, [{} ]>
  %l:2 = par.loop 2 (%x) : (!par.dist<tensor<2x4xf32>, @s0, [{}, {} ]>) -> (!par.dist<tensor<4xf32>, @s0, [{} ]>, !par.dist<tensor<4xf32>, @s0, [{} ]>) {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<4xf32>, @s0, [{} ]>):
    %f:4 = par.run @f(%xi, %w) : (!par.dist<tensor<4xf32>, @s0, [{} ]>, !par.dist<tensor<4xf32>, @s0, [{} ]>) -> (!par.dist<tensor<4xf32>, @s0, [{} ]>, !par.dist<tensor<4xf32>, @s0, [{} ]>, !par.dist<tensor<4xf32>, @s0, [{} ]>, !par.dist<tensor<4xf32>, @s0, [{} ]>)
    %b = par.run @b(%f#2, %f#0, %f#1) : (!par.dist<tensor<4xf32>, @s0, [{} ]>, !par.dist<tensor<4xf32>, @s0, [{} ]>, !par.dist<tensor<4xf32>, @s0, [{} ]>) -> !par.dist<tensor<4xf32>, @s0, [{} ]>
    par.yield [sum, sum] %b, %f#2 : !par.dist<tensor<4xf32>, @s0, [{} ]>, !par.dist<tensor<4xf32>, @s0, [{} ]>
  }
  par.return %l#0, %l#1 : !par.dist<tensor<4xf32>, @s0, [{} ]>, !par.dist<tensor<4xf32>, @s0, [{} ]>
}
