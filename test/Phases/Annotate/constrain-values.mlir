// out(M) matches values that M computes and others use; in(M) values that others compute and M uses; an input is
// constrained at the begin.
// RUN: split-file %s %t
// RUN: par-opt %S/Inputs/chain.mlir --par-constrain-values=plan=%t/plan.yaml | FileCheck %s
// RUN: not par-opt %S/Inputs/chain.mlir --par-constrain-values=plan=%t/dim.yaml 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not par-opt %S/Inputs/chain.mlir --par-constrain-values=plan=%t/twice.yaml 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: par-opt %S/Inputs/chain.mlir --par-constrain-values=plan=%t/output.yaml | FileCheck %s --check-prefix=OUTPUT
// RUN: not par-opt %S/Inputs/chain.mlir --par-constrain-values=plan=%t/input.yaml 2>&1 | FileCheck %s --check-prefix=INPUT

// CHECK: par.step @eval(%[[IDS:.*]]: tensor<4xi64>)
// CHECK: %[[IC:.*]] = par.constrain %[[IDS]] <[{"dp", ?}{{ ?}}]> : tensor<4xi64>
// CHECK: par.gather %{{.*}}, %[[IC]]
// The attention's sum is used twice outside and constrained once.
// CHECK: %[[SUM:.*]] = par.reduce sum
// CHECK-NEXT: %[[OUT:.*]] = par.constrain %[[SUM]] <[{?}, {"tp", ?}{{ ?}}]> : tensor<4x8xf32>
// CHECK-NEXT: par.dot %[[OUT]]
// CHECK: %[[H:.*]] = par.add %[[OUT]]
// CHECK-NEXT: %[[IN:.*]] = par.constrain %[[H]] <[{"dp"}, {}{{ ?}}]>
// CHECK: par.dot %[[IN]]
// DIM: dim.yaml:2:25: error: the value has 2 dims, so there is no dim 2
// DIM: note: the value is 'tensor<4x8xf32>'
// TWICE: twice.yaml:2:32: error: the value has 2 dims, so dims 0 and -2 are one dim; say all its axes in one list
// TWICE: note: the value is 'tensor<4x8xf32>'
// INPUT: input.yaml:2:9: error: there is no input 1, the module has 1

// A returned value is constrained at the return.
// OUTPUT: %[[CUT:.*]] = par.constrain %{{.*}} <[{"tp", ?}, {?}{{ ?}}]> : tensor<4x16xf32>
// OUTPUT-NEXT: par.return %[[CUT]]

//--- output.yaml
mesh: {tp: 2}
shard: {logits: {0: tp}}
//--- plan.yaml
mesh: {dp: 2, tp: 2}
batch: 4
shard:
  ids: {0: dp}
  out(attn): {-1: tp}
  in(h.1.mlp): {0: dp, closed: true}
//--- dim.yaml
mesh: {tp: 2}
shard: {out(attn): {2:  tp}}
//--- twice.yaml
mesh: {tp: 2, dp: 2}
shard: {out(attn): {0: tp, -2: dp}}
//--- input.yaml
mesh: {tp: 2}
shard: {"in(h.1.mlp)[1]": {0: tp}}
