// An op is on the stage after the last cut it depends on; one that depends on parameters alone goes with its first user.
// RUN: split-file %s %t
// RUN: par-opt %S/Inputs/chain.mlir --par-create-stages=plan=%t/starts.yaml --par-cut-stages=plan=%t/starts.yaml | FileCheck %s
// RUN: par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/even.yaml | FileCheck %s
// RUN: par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/node.yaml | FileCheck %s --check-prefix=NODE
// RUN: par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/auto.yaml | FileCheck %s --check-prefix=AUTO
// RUN: not par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/many.yaml 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/counts.yaml 2>&1 | FileCheck %s --check-prefix=COUNTS
// RUN: not par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/few.yaml 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/zero.yaml 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/memory.yaml 2>&1 | FileCheck %s --check-prefix=MEMORY

// CHECK: par.gather {{.*}}stage = 0
// CHECK: par.add {{.*}}stage = 0
// CHECK: par.dot {{.*}}stage = 1
// CHECK-NEXT: par.transpose {{.*}}stage = 1
// CHECK-NEXT: par.dot {{.*}}stage = 1
// NODE: par.reduce {{.*}}stage = 0
// NODE: par.dot {{.*}}stage = 1
// NODE: par.add {{.*}}stage = 1
// The solver's stages never go backwards, and both have something to do.
// AUTO: par.gather {{.*}}stage = 0
// AUTO: par.dot {{.*}}stage = 1
// AUTO-NOT: stage = 0
// MANY: many.yaml:2:20: error: cut "h.*" means 2 modules or nodes; a cut names the one that starts the next stage
// COUNTS: counts.yaml:2:20: error: "h.*" matches 2 modules; the counts of 2 stages add up to 3
// FEW: few.yaml:2:20: error: "h.*" matches 2 modules, fewer than the 3 stages
// ZERO: zero.yaml:2:19: error: the cuts leave stage 0 without an op that a parameter flows into
// MEMORY: memory.yaml:2:19: error: no cut into 2 stages: no cut of 6 nodes into 2 stages that fits the memory limits

//--- starts.yaml
{mesh: {pp: 2}, batch: 4, train: {}, pipeline: {cuts: [h.1]}}
//--- even.yaml
{mesh: {pp: 2}, batch: 4, train: {}, pipeline: {cuts: {h.*: even}}}
//--- node.yaml
{mesh: {pp: 2}, batch: 4, train: {}, pipeline: {cuts: [h.0.mlp/MatMul]}}
//--- auto.yaml
{mesh: {pp: 2}, batch: 4, train: {}}
//--- many.yaml
{mesh: {pp: 2}, batch: 4, train: {},
 pipeline: {cuts: [h.*]}}
//--- counts.yaml
{mesh: {pp: 2}, batch: 4, train: {},
 pipeline: {cuts: {h.*: [1, 2]}}}
//--- few.yaml
{mesh: {pp: 3}, batch: 4, train: {},
 pipeline: {cuts: {h.*: even}}}
//--- zero.yaml
{mesh: {pp: 2}, batch: 4, train: {},
 pipeline: {cuts: [wte]}}
//--- memory.yaml
{mesh: {pp: 2}, batch: 4, train: {}, target: {memory: 1KB},
 pipeline: {cuts: auto}}
