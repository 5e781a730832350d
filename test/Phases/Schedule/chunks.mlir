// A program runs all stages on its ranks. A value that one of them hands to another stays in place, and a value that a
// device has already is not sent to it again. Variables and inputs of several stages have one buffer, and a counter of
// several stages is written once.
// RUN: par-opt %s --par-build-programs=schedule=interleaved --par-verify-schedule | FileCheck %s
// RUN: par-opt %s --par-check-phases='passes=par-build-programs{schedule=interleaved},par-verify-schedule' > /dev/null
// RUN: sed 's/ranks .1.$/ranks [0]/' %s | par-opt --par-build-programs=schedule=interleaved --par-verify-schedule | FileCheck %s --check-prefix=ALONE
// RUN: not par-opt %s --par-build-programs=schedule=1f1b 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: sed -e 's/@s2 <> ranks .0.$/@s2 <> ranks [1]/' -e 's/@s3 <> ranks .1.$/@s3 <> ranks [0]/' %s | not par-opt --par-build-programs=schedule=interleaved 2>&1 | FileCheck %s --check-prefix=PLACE

// CHECK-LABEL: par.program @s0.program on @s0, @s2 ranks [0] {
// CHECK: par.buffer @rate state of "rate"
// CHECK-NOT: par.buffer @rate
// CHECK: par.buffer @eval.input.x input of "x" sliced
// CHECK-NOT: par.buffer @eval.input.x
// CHECK: par.block @eval.forward.s0 {
// CHECK: par.block @eval.s0.to.s1.send {
// CHECK-NEXT: %[[X:.*]] = par.load @eval.forward.s0.0
// CHECK-NEXT: par.send %[[X]] to [1]
// CHECK: par.block @eval.s1.to.s2.recv {
// CHECK-NEXT: %[[Y:.*]] = par.recv from [1]
// CHECK: par.block @eval.forward.s2 {
// The first stage's value is here.
// CHECK: par.load @eval.forward.s0.0
// CHECK: par.exec @eval.s2.forward
// CHECK: par.entry @eval runs [@eval.forward.s0, @eval.s0.to.s1.send, @eval.forward.s0, @eval.s0.to.s1.send
// CHECK-LABEL: par.program @s1.program on @s1, @s3 ranks [1] {
// CHECK: par.block @eval.s2.to.s3.recv {
// CHECK-NEXT: par.recv from [0] {{.*}} : tensor<64xf32>
// CHECK: par.exec @eval.s3.forward

// ALONE-NOT: par.send
// ALONE-NOT: par.recv
// ALONE: par.program @s0.program on @s0, @s1, @s2, @s3 ranks [0]
// ALONE: par.buffer @count
// ALONE-COUNT-1: par.store {{.*}} to @count
// ALONE-NOT: par.store {{.*}} to @count
// ONE: schedule '1f1b' takes 1 stages a device, and there are 2
// PLACE: schedule "interleaved" puts stage 2 on device 0; it lies on the ranks of device 1
!t0 = !par.dist<tensor<64xf32>, @s0, [{}]>
!t1 = !par.dist<tensor<64xf32>, @s1, [{}]>
!t2 = !par.dist<tensor<64xf32>, @s2, [{}]>
!t3 = !par.dist<tensor<64xf32>, @s3, [{}]>
!c0 = !par.dist<tensor<i64>, @s0, []>
!c2 = !par.dist<tensor<i64>, @s2, []>
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.stage @s2 <> ranks [0]
par.stage @s3 <> ranks [1]
par.variable @rate frozen : tensor<64xf32> at [!t0, !t2]
par.variable @count counter : tensor<i64> at [!c0, !c2]
par.fragment @eval.s0.forward(%x: tensor<64xf32>, %r: tensor<64xf32>) -> tensor<64xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.multiply %x, %r : tensor<64xf32>
  par.return %0 : tensor<64xf32>
}
par.fragment @eval.s1.forward(%x: tensor<64xf32>) -> tensor<64xf32> attributes {stage = @s1, kind = #par.fragment_kind<forward>, local} {
  %0 = par.exp %x : tensor<64xf32>
  par.return %0 : tensor<64xf32>
}
par.fragment @eval.s2.forward(%x: tensor<64xf32>, %r: tensor<64xf32>, %y: tensor<64xf32>, %s: tensor<64xf32>) -> tensor<64xf32> attributes {stage = @s2, kind = #par.fragment_kind<forward>, local} {
  %0 = par.multiply %x, %r : tensor<64xf32>
  %1 = par.add %0, %y : tensor<64xf32>
  %2 = par.add %1, %s : tensor<64xf32>
  par.return %2 : tensor<64xf32>
}
par.fragment @eval.s3.forward(%x: tensor<64xf32>) -> tensor<64xf32> attributes {stage = @s3, kind = #par.fragment_kind<forward>, local} {
  par.return %x : tensor<64xf32>
}
par.fragment @eval.s0.update(%c: tensor<i64>) -> tensor<i64> attributes {stage = @s0, kind = #par.fragment_kind<update>, local} {
  %0 = par.add %c, %c : tensor<i64>
  par.return %0 : tensor<i64>
}
par.fragment @eval.s2.update(%c: tensor<i64>) -> tensor<i64> attributes {stage = @s2, kind = #par.fragment_kind<update>, local} {
  %0 = par.add %c, %c : tensor<i64>
  par.return %0 : tensor<i64>
}
par.step @eval(%a: !par.dist<tensor<2x64xf32>, @s0, [{}, {}]>, %b: !par.dist<tensor<2x64xf32>, @s2, [{}, {}]>) -> !t3 attributes {inputs = ["x", "x"], outputs = ["y"]} {
  %r0 = par.read @rate : !t0
  %r2 = par.read @rate : !t2
  %c0 = par.read @count : !c0
  %c2 = par.read @count : !c2
  %l = par.loop 2 (%a, %b) : (!par.dist<tensor<2x64xf32>, @s0, [{}, {}]>, !par.dist<tensor<2x64xf32>, @s2, [{}, {}]>) -> !t3 {
  ^bb0(%i: tensor<i64>, %x0: !t0, %x2: !t2):
    %y0 = par.run @eval.s0.forward(%x0, %r0) : (!t0, !t0) -> !t0
    %s1 = par.transfer %y0 : !t0 to !t1
    %s2 = par.transfer %s1 : !t1 to !t2
    %y1 = par.run @eval.s1.forward(%s1) : (!t1) -> !t1
    %u2 = par.transfer %y1 : !t1 to !t2
    %y2 = par.run @eval.s2.forward(%u2, %r2, %x2, %s2) : (!t2, !t2, !t2, !t2) -> !t2
    %u3 = par.transfer %y2 : !t2 to !t3
    %y3 = par.run @eval.s3.forward(%u3) : (!t3) -> !t3
    par.yield [sum] %y3 : !t3
  }
  %n0 = par.run @eval.s0.update(%c0) : (!c0) -> !c0
  %n2 = par.run @eval.s2.update(%c2) : (!c2) -> !c2
  par.write %n0 to @count : !c0
  par.write %n2 to @count : !c2
  par.return %l : !t3
}
