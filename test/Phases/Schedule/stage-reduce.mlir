// An all-reduce across stages: values of one stage are combined first. Stages that use the result reduce it among
// themselves; the others send their values and receive nothing.
// RUN: par-opt %s --par-build-programs --par-verify-schedule | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-build-programs' > /dev/null

// CHECK-LABEL: par.program @s0.program
// CHECK: par.block @eval.stage_all_reduce {
// CHECK: par.add
// CHECK: %[[R:.*]] = par.recv from [2] tag [[T:.*]] : tensor<f32>
// CHECK: par.add %{{.*}}, %[[R]]
// CHECK: par.world_all_reduce sum %{{.*}} groups [array<i64: 0, 1>]
// CHECK: par.block @eval.stage_all_reduce_2 {
// CHECK: par.maximum
// CHECK-NOT: par.recv
// CHECK-NOT: par.world_all_reduce
// CHECK-LABEL: par.program @s1.program
// CHECK: par.world_all_reduce sum %{{.*}} groups [array<i64: 0, 1>]
// CHECK-LABEL: par.program @s2.program
// CHECK-NOT: par.world_all_reduce
// CHECK: par.send %{{.*}} to [0] tag [[T]] : tensor<f32>
// CHECK-NOT: par.world_all_reduce
!t0 = !par.dist<tensor<f32>, @s0, []>
!t1 = !par.dist<tensor<f32>, @s1, []>
!t2 = !par.dist<tensor<f32>, @s2, []>
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.stage @s2 <> ranks [2]
par.variable @a parameter : tensor<f32>
par.step @eval(%x0: !t0, %x1: !t1, %x2: !t2) -> (!t0, !t1, !t0) attributes {inputs = ["x0", "x1", "x2"], outputs = ["p", "q", "r"]} {
  %a = par.read @a : !t0
  %p, %u, %q, %v = par.stage_all_reduce sum %x0, %a, %x1, %x2 : (!t0, !t0, !t1, !t2) -> (!t0, !t0, !t1, !t2)
  %r, %w = par.stage_all_reduce max %x0, %a : (!t0, !t0) -> (!t0, !t0)
  par.return %p, %q, %r : !t0, !t1, !t0
}
