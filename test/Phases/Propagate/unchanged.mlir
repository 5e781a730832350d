// If parameters are gathered once a step, values that a loop computes only from variables are whole: no axis that
// shards the gradient comes to the decay that it is multiplied by, none that shards the scale to the moving variance.
// Else both have the shardings of the values that they meet.
// RUN: par-opt %s --par-propagate-shardings='batch-axes=dp state-axes=dp gradient-axes=dp parameter-axes=dp gather-once' --par-verify-propagate | FileCheck %s
// RUN: par-opt %s --par-propagate-shardings='batch-axes=dp state-axes=dp gradient-axes=dp parameter-axes=dp' --par-verify-propagate | FileCheck %s --check-prefix=USE

// CHECK-DAG: par.variable @a parameter {{.*}} at [!par.dist<tensor<4xf32>, @s0, [{"dp"}]>]
// CHECK-DAG: par.variable @v buffer {{.*}} at [!par.dist<tensor<4xf32>, @s0, [{}]>]
// CHECK-DAG: par.variable @said buffer {{.*}} at [!par.dist<tensor<4xf32>, @s0, [{"dp"}]>]
// USE-DAG: par.variable @v buffer {{.*}} at [!par.dist<tensor<4xf32>, @s0, [{"dp"}]>]
// CHECK-LABEL: par.fragment @forward
// CHECK: par.exp {{.*}}#par.sharding<[{}]>
// CHECK: par.multiply {{.*}}#par.sharding<[{}]>{{.*}} : tensor<4xf32>
// USE-LABEL: par.fragment @forward
// USE: par.exp {{.*}}#par.sharding<[{"dp"}]>
// CHECK-LABEL: par.step @train
// CHECK: %[[A:.*]] = par.read @a : !par.dist<tensor<4xf32>, @s0, [{"dp"}]>
// CHECK: %[[W:.*]] = par.reshard %[[A]] : <tensor<4xf32>, @s0, [{"dp"}]> to <tensor<4xf32>, @s0, [{}]>
// CHECK: par.loop
// CHECK: par.run @forward(%[[W]]
par.stage @s0 <"dp"=2> ranks [0, 1]
par.variable @a parameter : tensor<4xf32>
par.variable @v buffer : tensor<4xf32>
par.variable @said buffer : tensor<4xf32> sharding <[{"dp"}]>
par.fragment @forward(%a: tensor<4xf32>, %v: tensor<4xf32>, %s: tensor<4xf32>, %x: tensor<8x4xf32>) -> (tensor<4xf32>, tensor<f32>) attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  %e = par.exp %a : tensor<4xf32>
  %k = par.multiply %e, %v : tensor<4xf32>
  %b = par.broadcast_in_dim %k dims [1] : tensor<4xf32> to tensor<8x4xf32>
  %c = par.broadcast_in_dim %s dims [1] : tensor<4xf32> to tensor<8x4xf32>
  %y = par.multiply %x, %b : tensor<8x4xf32>
  %z = par.add %y, %c : tensor<8x4xf32>
  %l = par.reduce sum %z dims [0, 1] : tensor<8x4xf32> to tensor<f32>
  par.return %e, %l : tensor<4xf32>, tensor<f32>
}
par.fragment @backward(%e: tensor<4xf32>, %x: tensor<8x4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<backward>} {
  %r = par.reduce sum %x dims [0] : tensor<8x4xf32> to tensor<4xf32>
  %g = par.multiply %e, %r : tensor<4xf32>
  par.return %g : tensor<4xf32>
}
par.fragment @update(%a: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<update>} {
  %n = par.subtract %a, %g : tensor<4xf32>
  par.return %n : tensor<4xf32>
}
par.step @train(%x: !par.dist<tensor<2x8x4xf32>, @s0, ?>) -> !par.dist<tensor<f32>, @s0, ?> attributes {inputs = ["x"], outputs = ["loss"]} {
  %a = par.read @a : !par.dist<tensor<4xf32>, @s0, ?>
  %v = par.read @v : !par.dist<tensor<4xf32>, @s0, ?>
  %s = par.read @said : !par.dist<tensor<4xf32>, @s0, ?>
  %l, %g = par.loop 2 (%x) {labels = ["", "a"]} : (!par.dist<tensor<2x8x4xf32>, @s0, ?>) -> (!par.dist<tensor<f32>, @s0, ?>, !par.dist<tensor<4xf32>, @s0, ?>) {
  ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<8x4xf32>, @s0, ?>):
    %e, %li = par.run @forward(%a, %v, %s, %xi) : (!par.dist<tensor<4xf32>, @s0, ?>, !par.dist<tensor<4xf32>, @s0, ?>, !par.dist<tensor<4xf32>, @s0, ?>, !par.dist<tensor<8x4xf32>, @s0, ?>) -> (!par.dist<tensor<4xf32>, @s0, ?>, !par.dist<tensor<f32>, @s0, ?>)
    %gi = par.run @backward(%e, %xi) : (!par.dist<tensor<4xf32>, @s0, ?>, !par.dist<tensor<8x4xf32>, @s0, ?>) -> !par.dist<tensor<4xf32>, @s0, ?>
    par.yield [sum, sum] %li, %gi : !par.dist<tensor<f32>, @s0, ?>, !par.dist<tensor<4xf32>, @s0, ?>
  }
  %n = par.run @update(%a, %g) : (!par.dist<tensor<4xf32>, @s0, ?>, !par.dist<tensor<4xf32>, @s0, ?>) -> !par.dist<tensor<4xf32>, @s0, ?>
  par.write %n to @a : !par.dist<tensor<4xf32>, @s0, ?>
  par.return %l : !par.dist<tensor<f32>, @s0, ?>
}
