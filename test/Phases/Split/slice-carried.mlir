// A value carried from call to call is data of one microbatch: it is read in the loop, and the written value is a
// result of the loop like outputs are. Each of two stages that read it has a copy; the stage that makes it sends it to
// the other.
// RUN: par-opt %s --par-slice-microbatches=microbatches=1 | FileCheck %s
// RUN: par-opt %s --par-slice-microbatches=microbatches=2 | FileCheck %s --check-prefix=TWO
// RUN: par-opt %s --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments | FileCheck %s --check-prefix=BOTH
// RUN: par-opt %s --par-check-phases="passes=par-slice-microbatches{microbatches=2},par-assign-stages,par-form-fragments" -o /dev/null
// RUN: not par-opt %s --par-slice-microbatches=microbatches=3 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: sed 's/@s batch 0/@s batch 1/' %s | not par-opt --par-slice-microbatches=microbatches=2 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: sed 's/@s batch 0/@s/' %s | not par-opt --par-slice-microbatches=microbatches=2 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/write %2/write %%s/' %s | not par-opt --par-slice-microbatches=microbatches=2 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: sed 's/write %2/write %%t/' %s | not par-opt --par-slice-microbatches=microbatches=2 2>&1 | FileCheck %s --check-prefix=FIXED
// RUN: sed 's/write %2/write %3/' %s | not par-opt --par-slice-microbatches=microbatches=2 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// RUN: par-opt %s --par-slice-microbatches=microbatches=1 --par-assign-stages --par-form-fragments | FileCheck %s --check-prefix=STAGES
// RUN: par-opt %s --par-check-phases="passes=par-slice-microbatches{microbatches=1},par-assign-stages,par-form-fragments" -o /dev/null

// CHECK-LABEL: par.step @predict
// CHECK: %[[S:.*]] = par.read @s batch 0 : tensor<4x8xf32>
// CHECK: %[[LOOP:.*]]:2 = par.loop 1(%{{.*}}) {{.*}} -> (tensor<4x8xf32>, tensor<1x4x8xf32>)
// CHECK: par.add %{{.*}}, %[[S]]
// CHECK: par.yield [sum, stack]
// CHECK: par.write %[[LOOP]]#0 to @s
// CHECK: par.return %[[LOOP]]#1

// With several microbatches each reads and carries its own samples; the variable stacks them.
// TWO: par.variable @s carried : tensor<2x2x8xf32>
// TWO: %[[S:.*]] = par.read @s : tensor<2x2x8xf32>
// TWO: %[[LOOP:.*]] = par.loop 2(%{{.*}}, %[[S]]) {{.*}} -> tensor<2x2x8xf32>
// TWO: par.yield [stack]
// TWO: par.write %[[LOOP]] to @s : tensor<2x2x8xf32>

// BOTH: par.transfer %{{.*}} : <tensor<2x8xf32>, @s1, ?> to <tensor<2x8xf32>, @s0, ?>
// BOTH: par.yield
// BOTH-DAG: par.write %{{.*}} to @s : !par.dist<tensor<2x2x8xf32>, @s0, ?>
// BOTH-DAG: par.write %{{.*}} to @s : !par.dist<tensor<2x2x8xf32>, @s1, ?>

// THREE: the batch of 4 does not divide into 3 microbatches
// DIM: carries a value from call to call whose batch is dim 1; only dim 0 is supported yet with 2 microbatches
// NONE: carries on to @s, which has no batch, a value of each microbatch; say batch.microbatches: 1
// SAME: carries on to @s an unchanged input or state in 2 microbatches; say batch.microbatches: 1
// FIXED: carries on to @s, which has a batch, a value that is the same for all microbatches; say batch.microbatches: 1
// ELSEWHERE: carries on to @s, whose batch is dim 0, a value with its batch elsewhere; say batch.microbatches: 1

// STAGES-LABEL: par.step @predict
// STAGES-DAG: par.read @s : !par.dist<tensor<4x8xf32>, @s0, ?>
// STAGES-DAG: par.read @s : !par.dist<tensor<4x8xf32>, @s1, ?>
// STAGES: %[[LOOP:.*]]:2 = par.loop 1
// STAGES: %[[SENT:.*]] = par.transfer %[[LOOP]]#0 : <tensor<4x8xf32>, @s1, ?> to <tensor<4x8xf32>, @s0, ?>
// STAGES: par.write %[[SENT]] to @s : !par.dist<tensor<4x8xf32>, @s0, ?>
// STAGES: par.write %[[LOOP]]#0 to @s : !par.dist<tensor<4x8xf32>, @s1, ?>
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @s carried : tensor<4x8xf32>
par.variable @w frozen : tensor<8x8xf32>
par.variable @t frozen : tensor<4x8xf32>
par.step @predict(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {inputs = ["x"], outputs = ["y"]} {
  %w = par.read @w : tensor<8x8xf32>
  %s = par.read @s batch 0 : tensor<4x8xf32>
  %0 = par.dot %x, %w contracting [1] x [0] {stage = 0} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = par.add %0, %s {stage = 0} : tensor<4x8xf32>
  %2 = par.multiply %1, %s {stage = 1} : tensor<4x8xf32>
  %t = par.read @t : tensor<4x8xf32>
  %flat = par.reshape %2 : tensor<4x8xf32> to tensor<4x2x4xf32>
  %turned = par.transpose %flat [1, 0, 2] : tensor<4x2x4xf32> to tensor<2x4x4xf32>
  %4 = par.reshape %turned : tensor<2x4x4xf32> to tensor<8x4xf32>
  %3 = par.reshape %4 : tensor<8x4xf32> to tensor<4x8xf32>
  par.write %2 to @s : tensor<4x8xf32>
  par.return %2 : tensor<4x8xf32>
}
