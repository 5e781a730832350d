// Stages lie along the plan's axis, whatever its place in the mesh; other axes are refined to prime sizes.
// RUN: split-file %s %t
// RUN: par-opt %S/Inputs/chain.mlir --par-create-stages=plan=%t/outer.yaml | FileCheck %s --check-prefix=OUTER
// RUN: par-opt %S/Inputs/chain.mlir --par-create-stages=plan=%t/middle.yaml | FileCheck %s --check-prefix=MIDDLE
// RUN: par-opt %S/Inputs/chain.mlir --par-create-stages=plan=%t/order.yaml | FileCheck %s --check-prefix=ORDER
// RUN: par-opt %S/Inputs/chain.mlir --par-create-stages=plan=%t/empty.yaml | FileCheck %s --check-prefix=ONE
// RUN: par-opt %S/Inputs/chain.mlir --par-create-stages=plan=%t/empty.yaml --verify-diagnostics -o /dev/null
// RUN: not par-opt %S/Inputs/chain.mlir --par-create-stages=plan=%t/wrong.yaml 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not par-opt %S/Inputs/chain.mlir --par-create-stages=plan=%t/empty.yaml --par-create-stages=plan=%t/empty.yaml \
// RUN:   2>&1 | FileCheck %s --check-prefix=TWICE

// OUTER: par.stage @s0 <"dp"=2, "tp.0"=2, "tp.1"=2> ranks [0, 1, 2, 3, 4, 5, 6, 7]
// OUTER: par.stage @s1 <"dp"=2, "tp.0"=2, "tp.1"=2> ranks [8, 9, 10, 11, 12, 13, 14, 15]
// MIDDLE: par.stage @s0 <"tp"=2, "dp"=2> ranks [0, 1, 4, 5]
// MIDDLE: par.stage @s1 <"tp"=2, "dp"=2> ranks [2, 3, 6, 7]
// With mesh_order neighbouring ranks are those along its last axis; members of a stage stay in the order of the mesh.
// ORDER: par.stage @s0 <"dp"=2, "tp"=3> ranks [0, 4, 8, 2, 6, 10]
// ORDER: par.stage @s1 <"dp"=2, "tp"=3> ranks [1, 5, 9, 3, 7, 11]
// ONE: par.stage @s0 <> ranks [0]
// ONE-NOT: par.stage
// WRONG: wrong.yaml:1:1: error: unknown key "meshh"; did you mean "mesh"?
// TWICE: error: 'par.stage' op is in the module before Annotate

//--- outer.yaml
{mesh: {pp: 2, dp: 2, tp: 4}, batch: {size: 4, microbatches: 2}, train: {}}
//--- middle.yaml
{mesh: {tp: 2, pp: 2, dp: 2}, batch: {size: 4, microbatches: 2}, train: {}}
//--- order.yaml
{mesh: {pp: 2, dp: 2, tp: 3}, mesh_order: [tp, dp, pp], batch: {size: 4, microbatches: 2}, train: {}}
//--- empty.yaml
seed: 0
//--- wrong.yaml
meshh: {pp: 2}
