// The loop computes with parameters of some updates ago, what stands behind it starts from the newest; frozen ones have one
// version. With one call nothing changes.
// RUN: par-opt %s --par-delay-reads='behind=1,0 calls=4' --split-input-file --verify-diagnostics | FileCheck %s
// RUN: not par-opt %s --par-delay-reads='behind=1 calls=4' --split-input-file 2>&1 | FileCheck %s --check-prefix=COUNT

// COUNT: error: behind has 1 numbers for 2 stages, and calls is 4

// CHECK-LABEL: par.step @train
// CHECK-SAME: par.calls = 4 : i64
// CHECK: %[[NEW:.*]] = par.read @w : !par.dist<tensor<4xf32>, @s0, ?>
// CHECK: %[[OLD:.*]] = par.read @w behind 1 : !par.dist<tensor<4xf32>, @s0, ?>
// CHECK: %[[V:.*]] = par.read @v : !par.dist<tensor<4xf32>, @s1, ?>
// CHECK: %[[F:.*]] = par.read @f : !par.dist<tensor<4xf32>, @s0, ?>
// CHECK: par.loop 1
// CHECK: par.run @forward0(%[[OLD]], %[[F]],
// CHECK: par.run @forward1(%[[V]],
// CHECK: par.run @update0(%[[NEW]],
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @w parameter : tensor<4xf32>
par.variable @v parameter : tensor<4xf32>
par.variable @f frozen : tensor<4xf32>
par.fragment @forward0(%w: tensor<4xf32>, %f: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  %0 = par.multiply %w, %x : tensor<4xf32>
  %1 = par.multiply %0, %f : tensor<4xf32>
  par.return %1 : tensor<4xf32>
}
par.fragment @forward1(%v: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s1, kind = #par.fragment_kind<forward>} {
  %0 = par.multiply %v, %x : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.fragment @update0(%w: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<update>} {
  %0 = par.subtract %w, %g : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.fragment @update1(%v: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s1, kind = #par.fragment_kind<update>} {
  %0 = par.subtract %v, %g : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.step @train(%x: !par.dist<tensor<1x4xf32>, @s0, ?>) -> () {
  %w = par.read @w : !par.dist<tensor<4xf32>, @s0, ?>
  %v = par.read @v : !par.dist<tensor<4xf32>, @s1, ?>
  %f = par.read @f : !par.dist<tensor<4xf32>, @s0, ?>
  %g, %h = par.loop 1 (%x) : (!par.dist<tensor<1x4xf32>, @s0, ?>) -> (!par.dist<tensor<4xf32>, @s0, ?>, !par.dist<tensor<4xf32>, @s1, ?>) {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<4xf32>, @s0, ?>):
    %a = par.run @forward0(%w, %f, %xi) : (!par.dist<tensor<4xf32>, @s0, ?>, !par.dist<tensor<4xf32>, @s0, ?>, !par.dist<tensor<4xf32>, @s0, ?>) -> !par.dist<tensor<4xf32>, @s0, ?>
    %b = par.transfer %a : !par.dist<tensor<4xf32>, @s0, ?> to !par.dist<tensor<4xf32>, @s1, ?>
    %c = par.run @forward1(%v, %b) : (!par.dist<tensor<4xf32>, @s1, ?>, !par.dist<tensor<4xf32>, @s1, ?>) -> !par.dist<tensor<4xf32>, @s1, ?>
    par.yield [sum, sum] %a, %c : !par.dist<tensor<4xf32>, @s0, ?>, !par.dist<tensor<4xf32>, @s1, ?>
  }
  %nw = par.run @update0(%w, %g) : (!par.dist<tensor<4xf32>, @s0, ?>, !par.dist<tensor<4xf32>, @s0, ?>) -> !par.dist<tensor<4xf32>, @s0, ?>
  %nv = par.run @update1(%v, %h) : (!par.dist<tensor<4xf32>, @s1, ?>, !par.dist<tensor<4xf32>, @s1, ?>) -> !par.dist<tensor<4xf32>, @s1, ?>
  par.write %nw to @w : !par.dist<tensor<4xf32>, @s0, ?>
  par.write %nv to @v : !par.dist<tensor<4xf32>, @s1, ?>
  par.return
}

// -----

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @n counter : tensor<4xf32>
par.fragment @forward(%n: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  %0 = par.multiply %n, %x : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.step @train(%x: !par.dist<tensor<1x4xf32>, @s0, ?>) -> () {
  // expected-error @below {{computes microbatches with "n", which each batch changes: an asynchronous schedule begins batches before the ones before them have ended, and only parameters may then be of earlier updates}}
  %n = par.read @n : !par.dist<tensor<4xf32>, @s0, ?>
  %g = par.loop 1 (%x) : (!par.dist<tensor<1x4xf32>, @s0, ?>) -> (!par.dist<tensor<4xf32>, @s0, ?>) {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<4xf32>, @s0, ?>):
    %a = par.run @forward(%n, %xi) : (!par.dist<tensor<4xf32>, @s0, ?>, !par.dist<tensor<4xf32>, @s0, ?>) -> !par.dist<tensor<4xf32>, @s0, ?>
    par.yield [sum] %a : !par.dist<tensor<4xf32>, @s0, ?>
  }
  par.write %g to @n : !par.dist<tensor<4xf32>, @s0, ?>
  par.return
}

// -----

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @n counter : tensor<f32>
par.step @train(%x: !par.dist<tensor<f32>, @s0, ?>, %y: !par.dist<tensor<f32>, @s1, ?>) -> () {
  // expected-error @below {{combines numbers of all stages, which an asynchronous schedule does not wait for}}
  %s:2 = par.stage_reduce sum %x, %y : (!par.dist<tensor<f32>, @s0, ?>, !par.dist<tensor<f32>, @s1, ?>) -> (!par.dist<tensor<f32>, @s0, ?>, !par.dist<tensor<f32>, @s1, ?>)
  par.write %s#0 to @n : !par.dist<tensor<f32>, @s0, ?>
  par.return
}
