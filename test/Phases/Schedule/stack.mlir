// A stacked result is handed out microbatch by microbatch; a loop that slices it reads the stacked value.
// RUN: par-opt %s --par-build-programs --par-verify-schedule | FileCheck %s

// CHECK: par.buffer @predict.f.0 temp by microbatch depth 2 : tensor<4xf32>
// CHECK: par.block @predict.f {
// CHECK: %[[Y:.*]] = par.exec @f
// CHECK: par.fetch %[[Y]] as "y" sliced : tensor<4xf32> of !par.dist<tensor<4xf32>, @s0, [{}]>
// CHECK: par.store %[[Y]] to @predict.f.0
// CHECK: par.block @predict.f_2.first
// CHECK: par.load @predict.f.0
// CHECK: par.entry @predict runs [@predict.f, @predict.f, @predict.f_2.first, @predict.f_2, @predict.result] microbatches [0, 1, 0, 1, 0]
!t = !par.dist<tensor<4xf32>, @s0, [{}]>
!x = !par.dist<tensor<2x4xf32>, @s0, [{}, {}]>
par.stage @s0 <> ranks [0]
par.fragment @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.exp %x : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.step @predict(%x: !x) -> (!x, !t) attributes {inputs = ["x"], outputs = ["y", "z"]} {
  %y = par.loop 2 (%x) : (!x) -> !x {
  ^bb0(%i: tensor<i64>, %xi: !t):
    %yi = par.run @f(%xi) : (!t) -> !t
    par.yield [stack] %yi : !t
  }
  %z = par.loop 2 (%y) : (!x) -> !t {
  ^bb0(%i: tensor<i64>, %yi: !t):
    %zi = par.run @f(%yi) : (!t) -> !t
    par.yield [sum] %zi : !t
  }
  par.return %y, %z : !x, !t
}
