// The loop computes with stale parameters, ops after it start from the newest; frozen parameters have one version. With
// one call nothing changes.
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
  // expected-error @below {{computes microbatches with "n", which each batch changes: batches of an asynchronous schedule overlap, so besides parameters they may change only counters and statistics that only forward updates; say pipeline.schedule: 1f1b}}
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
  %s:2 = par.stage_all_reduce sum %x, %y : (!par.dist<tensor<f32>, @s0, ?>, !par.dist<tensor<f32>, @s1, ?>) ->
  (!par.dist<tensor<f32>, @s0, ?>, !par.dist<tensor<f32>, @s1, ?>) par.write %s#0 to @n : !par.dist<tensor<f32>, @s0, ?>
  par.return
}

// -----

// A counter that the loop reads counts on before it, and every microbatch takes along the number that its batch began with.
// CHECK-LABEL: par.fragment @train.s0.counted(%arg0: tensor<f32>)
// CHECK: par.return %arg0
// CHECK: par.fragment @train.s0.count(
// CHECK-SAME: -> (tensor<f32>, tensor<f32>) attributes {kind = #par.fragment_kind<before>
// CHECK: %[[ONE:.*]] = par.constant
// CHECK: %[[NEXT:.*]] = par.add %arg0, %[[ONE]]
// CHECK: par.return %arg0, %[[NEXT]]
// CHECK: par.fragment @update(%{{.*}}: tensor<f32>, %{{.*}}: tensor<f32>) -> tensor<f32>
// CHECK: par.step @train
// CHECK: %[[N:.*]] = par.read @n
// CHECK: %[[BEGAN:.*]]:2 = par.run @train.s0.count(%[[N]])
// CHECK: par.loop 2
// CHECK: %[[MINE:.*]] = par.run @train.s0.counted(%[[BEGAN]]#0)
// CHECK: %[[A:.*]] = par.run @forward(%[[MINE]],
// CHECK: par.run @backward(%[[MINE]], %[[A]])
// CHECK: par.write %[[BEGAN]]#1 to @n
!s = !par.dist<tensor<f32>, @s0, ?>
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @n counter : tensor<f32>
par.variable @w parameter : tensor<f32>
par.fragment @forward(%n: tensor<f32>, %w: tensor<f32>, %x: tensor<f32>) -> tensor<f32> attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  %0 = par.multiply %n, %w : tensor<f32>
  %1 = par.multiply %0, %x : tensor<f32>
  par.return %1 : tensor<f32>
}
par.fragment @backward(%n: tensor<f32>, %y: tensor<f32>) -> tensor<f32> attributes {stage = @s0, kind = #par.fragment_kind<backward>} {
  %0 = par.multiply %n, %y : tensor<f32>
  par.return %0 : tensor<f32>
}
par.fragment @update(%n: tensor<f32>, %w: tensor<f32>, %g: tensor<f32>) -> (tensor<f32>, tensor<f32>) attributes {stage = @s0, kind = #par.fragment_kind<update>} {
  %0 = par.constant dense<1.0> : tensor<f32>
  %1 = par.add %n, %0 : tensor<f32>
  %2 = par.subtract %w, %g : tensor<f32>
  par.return %1, %2 : tensor<f32>, tensor<f32>
}
par.step @train(%x: !par.dist<tensor<2xf32>, @s0, ?>) -> () {
  %n = par.read @n : !s
  %w = par.read @w : !s
  %g = par.loop 2 (%x) : (!par.dist<tensor<2xf32>, @s0, ?>) -> (!s) {
  ^bb0(%i: tensor<i64>, %xi: !s):
    %a = par.run @forward(%n, %w, %xi) : (!s, !s, !s) -> !s
    %b = par.run @backward(%n, %a) : (!s, !s) -> !s
    par.yield [sum] %b : !s
  }
  %u:2 = par.run @update(%n, %w, %g) : (!s, !s, !s) -> (!s, !s)
  par.write %u#0 to @n : !s
  par.write %u#1 to @w : !s
  par.return
}

// -----

// Moving statistics are computed from forward's sums apart from the update, unless the loop itself reads and sums them.
// CHECK-LABEL: par.fragment @train.s0.move(
// CHECK: par.fragment @update(%{{.*}}: tensor<f32>, %{{.*}}: tensor<f32>) -> tensor<f32>
// CHECK: par.step @train
// CHECK: %[[MEAN:.*]] = par.read @mean
// CHECK: %[[OWN:.*]] = par.read @own
// CHECK: %[[SUMS:.*]]:3 = par.loop 1
// CHECK: par.run @forward(%[[OWN]],
// CHECK: %[[MOVED:.*]] = par.run @train.s0.move(%[[MEAN]], %[[SUMS]]#0)
// CHECK: par.run @update(%{{.*}}, %[[SUMS]]#2)
// CHECK: par.write %[[MOVED]] to @mean
// CHECK: par.write %[[SUMS]]#1 to @own
!s = !par.dist<tensor<f32>, @s0, ?>
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @mean buffer : tensor<f32>
par.variable @own buffer : tensor<f32>
par.variable @w parameter : tensor<f32>
par.fragment @forward(%own: tensor<f32>, %w: tensor<f32>, %x: tensor<f32>) -> (tensor<f32>, tensor<f32>) attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  %0 = par.multiply %w, %x : tensor<f32>
  %1 = par.add %own, %x : tensor<f32>
  par.return %0, %1 : tensor<f32>, tensor<f32>
}
par.fragment @backward(%y: tensor<f32>) -> tensor<f32> attributes {stage = @s0, kind = #par.fragment_kind<backward>} {
  %0 = par.negate %y : tensor<f32>
  par.return %0 : tensor<f32>
}
par.fragment @update(%mean: tensor<f32>, %sum: tensor<f32>, %w: tensor<f32>, %g: tensor<f32>) -> (tensor<f32>, tensor<f32>) attributes {stage = @s0, kind = #par.fragment_kind<update>} {
  %0 = par.add %mean, %sum : tensor<f32>
  %1 = par.subtract %w, %g : tensor<f32>
  par.return %0, %1 : tensor<f32>, tensor<f32>
}
par.step @train(%x: !par.dist<tensor<1xf32>, @s0, ?>) -> () {
  %mean = par.read @mean : !s
  %own = par.read @own : !s
  %w = par.read @w : !s
  %g:3 = par.loop 1 (%x) : (!par.dist<tensor<1xf32>, @s0, ?>) -> (!s, !s, !s) {
  ^bb0(%i: tensor<i64>, %xi: !s):
    %a:2 = par.run @forward(%own, %w, %xi) : (!s, !s, !s) -> (!s, !s)
    %b = par.run @backward(%a#0) : (!s) -> !s
    par.yield [sum, sum, sum] %a#0, %a#1, %b : !s, !s, !s
  }
  %u:2 = par.run @update(%mean, %g#0, %w, %g#2) : (!s, !s, !s, !s) -> (!s, !s)
  par.write %u#0 to @mean : !s
  par.write %g#1 to @own : !s
  par.write %u#1 to @w : !s
  par.return
}
