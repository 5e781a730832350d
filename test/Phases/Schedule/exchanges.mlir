// Stages of different meshes: two ranks send their rows to one, which concatenates them; that one sends to each of two
// the rows that it needs, padded; each user of a sum over all stages receives the parts.
// RUN: par-opt %s --par-build-programs --par-verify-schedule | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-build-programs,par-inline-fragments,par-form-kernels,par-assign-buffers,par-pack-memory' > /dev/null

// CHECK-LABEL: par.program @s0.program
// CHECK: par.block @eval.stage_all_reduce {
// CHECK: par.send_parts %{{.*}} to [1] groups [array<i64: 0, 2>] tag [[N:[0-9]+]] : tensor<f32>
// CHECK-NOT: par.recv_parts
// CHECK: par.block @eval.s0.to.s1.send {
// CHECK: par.send_parts %{{.*}} to [2] groups [array<i64: 0, 1, 2>] tag [[A:[0-9]+]] : tensor<4x4xf32>
// CHECK-LABEL: par.program @s1.program
// CHECK: par.block @eval.stage_all_reduce {
// CHECK: %[[L:.*]] = par.recv_parts from [0] groups [array<i64: 0, 2>] tag [[N]] : tensor<f32>
// CHECK: par.add %[[L]]
// CHECK: par.block @eval.s0.to.s1.recv {
// CHECK: %[[P:.*]]:2 = par.recv_parts from [0, 1] groups [array<i64: 0, 1, 2>] tag [[A]] : tensor<4x4xf32>, tensor<4x4xf32>
// CHECK: %[[J:.*]] = par.concat %[[P]]#0, %[[P]]#1 dim 0
// CHECK: par.slice %[[J]] [0, 0] to [7, 4] by [1, 1]
// CHECK: par.block @eval.s1.to.s2.send {
// CHECK: %[[Q:.*]] = par.pad %{{.*}} low [0, 0] high [1, 0]
// CHECK: %[[S:.*]] = par.slice %[[Q]] [0, 0] to [4, 4]
// CHECK: %[[T:.*]] = par.slice %[[Q]] [4, 0] to [8, 4]
// CHECK: par.send_parts %[[S]], %[[T]] to [1, 2] groups [array<i64: 2, 3, 4>] tag [[B:[0-9]+]] : tensor<4x4xf32>, tensor<4x4xf32>
// CHECK-LABEL: par.program @s2.program
// CHECK: par.recv_parts from [0] groups [array<i64: 2, 3, 4>] tag [[B]] : tensor<4x4xf32>
par.stage @s0 <"dp"=2> ranks [0, 1]
par.stage @s1 <> ranks [2]
par.stage @s2 <"dp"=2> ranks [3, 4]
!x0 = !par.dist<tensor<7x4xf32>, @s0, [{"dp"}, {}]>
!x1 = !par.dist<tensor<7x4xf32>, @s1, [{}, {}]>
!x2 = !par.dist<tensor<7x4xf32>, @s2, [{"dp"}, {}]>
!n0 = !par.dist<tensor<f32>, @s0, []>
!n1 = !par.dist<tensor<f32>, @s1, []>
par.variable @a frozen : tensor<f32> at [!n0, !n1]
par.fragment @eval.s0.forward(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.sin %x : tensor<4x4xf32>
  par.return %0 : tensor<4x4xf32>
}
par.step @eval(%x: !x0) -> (!x2, !n1) attributes {inputs = ["x"], outputs = ["y", "n"]} {
  %a0 = par.read @a : !n0
  %a1 = par.read @a : !n1
  %0 = par.run @eval.s0.forward(%x) : (!x0) -> !x0
  %1 = par.transfer %0 : <tensor<7x4xf32>, @s0, [{"dp"}, {}]> to <tensor<7x4xf32>, @s1, [{}, {}]>
  %2 = par.transfer %1 : <tensor<7x4xf32>, @s1, [{}, {}]> to <tensor<7x4xf32>, @s2, [{"dp"}, {}]>
  %n:2 = par.stage_all_reduce sum %a0, %a1 : (!n0, !n1) -> (!n0, !n1)
  par.return %2, %n#1 : !x2, !n1
}
