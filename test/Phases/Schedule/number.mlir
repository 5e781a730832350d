// An op that uses the microbatch index loads it from the microbatch's slot. One run for each microbatch writes it
// before all other blocks, on the stages that need it, once for both loops.
// RUN: par-opt %s --par-build-programs --par-verify-schedule | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-build-programs,par-verify-schedule,par-inline-fragments,par-form-kernels,par-verify-kernels,par-assign-buffers,par-pack-memory,par-verify-memory' | FileCheck %s --check-prefix=MEMORY

// CHECK-LABEL: par.program @s0.program
// CHECK: par.buffer @predict.microbatch temp by microbatch depth 3 : tensor<i64>
// CHECK: par.buffer @predict.microbatch.counted temp : tensor<i64>
// CHECK: par.block @predict.number.first
// CHECK: %[[ZERO:.*]] = par.constant dense<0>
// CHECK: par.store %[[ZERO]] to @predict.microbatch
// CHECK: par.store %[[ZERO]] to @predict.microbatch.counted
// CHECK: par.block @predict.number {
// CHECK: %[[NEXT:.*]] = par.add
// CHECK: par.store %[[NEXT]] to @predict.microbatch
// CHECK: par.store %[[NEXT]] to @predict.microbatch.counted
// CHECK: par.block @predict.f
// CHECK: %[[NUMBER:.*]] = par.load @predict.microbatch
// CHECK: par.exec @f(%[[NUMBER]]
// CHECK: par.entry @predict runs [@predict.number.first, @predict.number, @predict.number, {{.*}} microbatches [0, 1, 2,
// CHECK-LABEL: par.program @s1.program
// CHECK-NOT: microbatch :
// CHECK: par.entry @predict runs [@predict.s0.to.s1.recv
// MEMORY: par.buffer @predict.microbatch temp by microbatch depth 3 : tensor<i64> at [
!t = !par.dist<tensor<4xi64>, @s0, [{}]>
!u = !par.dist<tensor<4xi64>, @s1, [{}]>
!x = !par.dist<tensor<3x4xi64>, @s0, [{}, {}]>
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.fragment @f(%i: tensor<i64>, %x: tensor<4xi64>) -> tensor<4xi64> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.broadcast_in_dim %i dims [] : tensor<i64> to tensor<4xi64>
  %1 = par.multiply %0, %x : tensor<4xi64>
  par.return %1 : tensor<4xi64>
}
par.fragment @g(%x: tensor<4xi64>) -> tensor<4xi64> attributes {stage = @s1, kind = #par.fragment_kind<forward>, local} {
  %0 = par.negate %x : tensor<4xi64>
  par.return %0 : tensor<4xi64>
}
par.step @predict(%x: !x) -> (!u, !t) attributes {inputs = ["x"], outputs = ["y", "z"]} {
  %y = par.loop 3 (%x) : (!x) -> !u {
  ^bb0(%i: tensor<i64>, %xi: !t):
    %a = par.run @f(%i, %xi) : (tensor<i64>, !t) -> !t
    %b = par.transfer %a : !t to !u
    %c = par.run @g(%b) : (!u) -> !u
    par.yield [sum] %c : !u
  }
  %z = par.loop 3 (%x) : (!x) -> !t {
  ^bb0(%i: tensor<i64>, %xi: !t):
    %a = par.run @f(%i, %xi) : (tensor<i64>, !t) -> !t
    par.yield [sum] %a : !t
  }
  par.return %y, %z : !u, !t
}
