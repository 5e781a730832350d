// What is carried from call to call is data of the one microbatch: it is read where the loop uses it, and what is written comes
// out whole beside what is handed out. Two stages that read it have it each; it is sent to the one that does not make it.
// RUN: par-opt %s --par-slice-microbatches=microbatches=1 | FileCheck %s
// RUN: not par-opt %s --par-slice-microbatches=microbatches=2 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: par-opt %s --par-slice-microbatches=microbatches=1 --par-assign-stages --par-form-fragments | FileCheck %s --check-prefix=STAGES
// RUN: par-opt %s --par-check-phases="passes=par-slice-microbatches{microbatches=1},par-assign-stages,par-form-fragments" -o /dev/null

// CHECK-LABEL: par.step @predict
// CHECK: %[[S:.*]] = par.read @s batch 0 : tensor<4x8xf32>
// CHECK: %[[LOOP:.*]]:2 = par.loop 1(%{{.*}}) {{.*}} -> (tensor<4x8xf32>, tensor<1x4x8xf32>)
// CHECK: par.add %{{.*}}, %[[S]]
// CHECK: par.yield [sum, stack]
// CHECK: par.write %[[LOOP]]#0 to @s
// CHECK: par.return %[[LOOP]]#1

// TWO: error: {{.*}}carries a value from call to call, which 2 microbatches would change in turn; say batch.microbatches: 1

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
par.step @predict(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {inputs = ["x"], outputs = ["y"]} {
  %w = par.read @w : tensor<8x8xf32>
  %s = par.read @s batch 0 : tensor<4x8xf32>
  %0 = par.dot %x, %w contracting [1] x [0] {stage = 0} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = par.add %0, %s {stage = 0} : tensor<4x8xf32>
  %2 = par.multiply %1, %s {stage = 1} : tensor<4x8xf32>
  par.write %2 to @s : tensor<4x8xf32>
  par.return %2 : tensor<4x8xf32>
}
