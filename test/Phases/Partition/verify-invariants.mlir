// Loop-invariant values are gathered once a step, or for each use, as the plan says: a gather on the wrong side of the
// loop is an error.
// RUN: not par-opt %s --par-verify-invariants="parameter-axes=dp gather-once=true" --split-input-file 2>&1 | FileCheck %s --check-prefix=STEP
// STEP: :[[@LINE+27]]:{{.*}} error: gathers values of variables in each microbatch, which the plan gathers once a step (zero.gather: step)
// STEP: note: in the loop of @inside
// STEP: :[[@LINE+106]]:{{.*}} error: gathers values of variables in each microbatch
// STEP: note: in the loop of @kept
// STEP-NOT: error:
// RUN: not par-opt %s --par-verify-invariants="parameter-axes=dp" --split-input-file 2>&1 | FileCheck %s --check-prefix=USE
// USE: :[[@LINE+41]]:{{.*}} error: gathers a variable before the loop, though the plan gathers it for each use (zero.gather: use), and keeps it whole for all microbatches
// USE: note: used here, in the loop of @before
// USE: :[[@LINE+100]]:{{.*}} error: gathers a variable that a later fragment takes, though the plan gathers it for each use (zero.gather: use), and keeps it whole until then
// USE: note: used here, in the loop of @kept
// USE-NOT: error:

// The output under one of the two settings passes its own gate (par-compile runs it), and not the other's.
// DEFINE: %{compile} = par-compile %models/mlp/model.onnx --set mesh='{dp: 2}' --set batch='{size: 16, microbatches: 2}' --set train={} --set precision=bf16 --stop-after=partition
// RUN: %{compile} --set zero='{level: 3, min_size: 0, gather: use}' > %t.use.mlir
// RUN: %{compile} --set zero='{level: 3, min_size: 0, gather: step}' > %t.step.mlir
// RUN: not par-opt %t.use.mlir --par-verify-invariants="parameter-axes=dp gather-once=true" 2>&1 | FileCheck %s --check-prefix=MADE-USE
// RUN: not par-opt %t.step.mlir --par-verify-invariants="parameter-axes=dp" 2>&1 | FileCheck %s --check-prefix=MADE-STEP
// MADE-USE: error: gathers values of variables in each microbatch
// MADE-USE: note: in the loop of @{{train|eval}}
// MADE-STEP: error: gathers a variable before the loop
// MADE-STEP: note: used here, in the loop of @{{train|eval}}

par.stage @s0 <"dp"=2> ranks [0, 1]
par.variable @w parameter : tensor<4x4xf32>
par.fragment @forward(%w: tensor<2x4xf32>, %x: tensor<1x4xf32>) -> tensor<1x4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.convert %w : tensor<2x4xf32> to tensor<2x4xbf16>
  %1 = par.all_gather %0 dims [0] over ["dp"] : (tensor<2x4xbf16>) -> tensor<4x4xbf16>
  %2 = par.convert %x : tensor<1x4xf32> to tensor<1x4xbf16>
  %3 = par.dot %2, %1 contracting [1] x [0] : (tensor<1x4xbf16>, tensor<4x4xbf16>) -> tensor<1x4xf32>
  par.return %3 : tensor<1x4xf32>
}
par.step @inside(%x: !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) -> !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]> {
  %w = par.read @w : !par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {}]>
  %l = par.loop 4 (%x) : (!par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) -> (!par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>):
    %y = par.run @forward(%w, %xi) : (!par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {}]>, !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>) -> !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>
    par.yield [stack] %y : !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>
  }
  par.return %l : !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.variable @w parameter : tensor<4x4xf32>
par.fragment @gather(%w: tensor<2x4xf32>) -> tensor<4x4xf32> attributes {stage = @s0, kind = #par.fragment_kind<reduce>, local} {
  %0 = par.all_gather %w dims [0] over ["dp"] : (tensor<2x4xf32>) -> tensor<4x4xf32>
  par.return %0 : tensor<4x4xf32>
}
par.fragment @turn(%w: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.transpose %w [1, 0] : tensor<4x4xf32> to tensor<4x4xf32>
  par.return %0 : tensor<4x4xf32>
}
par.fragment @forward(%w: tensor<4x4xf32>, %x: tensor<1x4xf32>) -> tensor<1x4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  par.return %0 : tensor<1x4xf32>
}
par.step @before(%x: !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) -> !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]> {
  %w = par.read @w : !par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {}]>
  %v = par.run @gather(%w) : (!par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {}]>) -> !par.dist<tensor<4x4xf32>, @s0, [{}, {}]>
  %t = par.run @turn(%v) : (!par.dist<tensor<4x4xf32>, @s0, [{}, {}]>) -> !par.dist<tensor<4x4xf32>, @s0, [{}, {}]>
  %l = par.loop 4 (%x) : (!par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) -> (!par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>):
    %y = par.run @forward(%t, %xi) : (!par.dist<tensor<4x4xf32>, @s0, [{}, {}]>, !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>) -> !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>
    par.yield [stack] %y : !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>
  }
  par.return %l : !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>
}

// -----

// Values that depend on data, or on the microbatch index, vary; a matmul of two weights before the loop is computed
// there, and may gather one of them; a sum of a weight's elements over ranks is no gather.
par.stage @s0 <"dp"=2> ranks [0, 1]
par.variable @a parameter : tensor<4x4xf32>
par.variable @b parameter : tensor<4x4xf32>
par.fragment @product(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.all_gather %b dims [0] over ["dp"] : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %1 = par.dot %a, %0 contracting [1] x [0] : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  par.return %1 : tensor<2x4xf32>
}
par.fragment @forward(%w: tensor<2x4xf32>, %x: tensor<1x4xf32>, %i: tensor<i64>) -> tensor<2x4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.all_gather %x dims [0] over ["dp"] : (tensor<1x4xf32>) -> tensor<2x4xf32>
  %1 = par.reduce sum %w dims [0, 1] : tensor<2x4xf32> to tensor<f32>
  %2 = par.all_reduce sum %1 over ["dp"] : (tensor<f32>) -> tensor<f32>
  %3 = par.broadcast_in_dim %2 dims [] : tensor<f32> to tensor<2x4xf32>
  %4 = par.multiply %0, %3 : tensor<2x4xf32>
  par.return %4 : tensor<2x4xf32>
}
par.step @neither(%x: !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) -> !par.dist<tensor<4x2x4xf32>, @s0, [{}, {}, {}]> {
  %a = par.read @a : !par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {}]>
  %b = par.read @b : !par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {}]>
  %w = par.run @product(%a, %b) : (!par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {}]>, !par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {}]>) -> !par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {}]>
  %l = par.loop 4 (%x) : (!par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) -> (!par.dist<tensor<4x2x4xf32>, @s0, [{}, {}, {}]>) {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>):
    %y = par.run @forward(%w, %xi, %i) : (!par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {}]>, !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>, tensor<i64>) -> !par.dist<tensor<2x4xf32>, @s0, [{}, {}]>
    par.yield [stack] %y : !par.dist<tensor<2x4xf32>, @s0, [{}, {}]>
  }
  par.return %l : !par.dist<tensor<4x2x4xf32>, @s0, [{}, {}, {}]>
}

// -----

// A backward uses forward's broadcast of a gathered weight.
par.stage @s0 <"dp"=2> ranks [0, 1]
par.variable @w parameter : tensor<4xf32>
par.fragment @forward(%w: tensor<2xf32>, %x: tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>) attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.all_gather %w dims [0] over ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  %1 = par.broadcast_in_dim %0 dims [1] : tensor<4xf32> to tensor<1x4xf32>
  %2 = par.multiply %x, %1 : tensor<1x4xf32>
  par.return %2, %1 : tensor<1x4xf32>, tensor<1x4xf32>
}
par.fragment @backward(%y: tensor<1x4xf32>, %w: tensor<1x4xf32>) -> tensor<1x4xf32> attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  %0 = par.multiply %y, %w : tensor<1x4xf32>
  par.return %0 : tensor<1x4xf32>
}
par.step @kept(%x: !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) -> !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]> {
  %w = par.read @w : !par.dist<tensor<4xf32>, @s0, [{"dp"}]>
  %l = par.loop 4 (%x) : (!par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) -> (!par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>):
    %y:2 = par.run @forward(%w, %xi) : (!par.dist<tensor<4xf32>, @s0, [{"dp"}]>, !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>) -> (!par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>, !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>)
    %z = par.run @backward(%y#0, %y#1) : (!par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>, !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>) -> !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>
    par.yield [stack] %z : !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>
  }
  par.return %l : !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>
}

// -----

// A value sharded over other axes is gathered if that pays, and so is one sharded over these if the plan gives a rule
// for a variable: from @said the axis may have been propagated to @beside.
par.stage @s0 <"dp"=2, "tp"=2> ranks [0, 1, 2, 3]
par.variable @said parameter : tensor<4xf32> sharding <[{"dp"}]>
par.variable @beside parameter : tensor<4xf32>
par.variable @other parameter : tensor<4xf32> sharding <[{"tp", ?}]>
par.fragment @gather(%w: tensor<2xf32>, %v: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {stage = @s0, kind = #par.fragment_kind<reduce>, local} {
  %0 = par.all_gather %w dims [0] over ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  %1 = par.all_gather %v dims [0] over ["tp"] : (tensor<2xf32>) -> tensor<4xf32>
  par.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
par.fragment @forward(%a: tensor<4xf32>, %b: tensor<4xf32>, %w: tensor<2xf32>, %v: tensor<2xf32>, %x: tensor<1x4xf32>) -> tensor<1x4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.all_gather %w dims [0] over ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  %1 = par.all_gather %v dims [0] over ["tp"] : (tensor<2xf32>) -> tensor<4xf32>
  %2 = par.add %0, %1 : tensor<4xf32>
  %3 = par.add %a, %b : tensor<4xf32>
  %4 = par.multiply %2, %3 : tensor<4xf32>
  %5 = par.broadcast_in_dim %4 dims [1] : tensor<4xf32> to tensor<1x4xf32>
  %6 = par.multiply %x, %5 : tensor<1x4xf32>
  par.return %6 : tensor<1x4xf32>
}
par.step @asked(%x: !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) -> !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]> {
  %w = par.read @beside : !par.dist<tensor<4xf32>, @s0, [{"dp"}]>
  %v = par.read @other : !par.dist<tensor<4xf32>, @s0, [{"tp"}]>
  %a, %b = par.run @gather(%w, %v) : (!par.dist<tensor<4xf32>, @s0, [{"dp"}]>, !par.dist<tensor<4xf32>, @s0, [{"tp"}]>) -> (!par.dist<tensor<4xf32>, @s0, [{}]>, !par.dist<tensor<4xf32>, @s0, [{}]>)
  %l = par.loop 4 (%x) : (!par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) -> (!par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>) {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>):
    %y = par.run @forward(%a, %b, %w, %v, %xi) : (!par.dist<tensor<4xf32>, @s0, [{}]>, !par.dist<tensor<4xf32>, @s0, [{}]>, !par.dist<tensor<4xf32>, @s0, [{"dp"}]>, !par.dist<tensor<4xf32>, @s0, [{"tp"}]>, !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>) -> !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>
    par.yield [stack] %y : !par.dist<tensor<2x4xf32>, @s0, [{"dp"}, {}]>
  }
  par.return %l : !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {}]>
}
