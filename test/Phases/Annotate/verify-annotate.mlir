// The gate refuses the output of Import, and hints and shardings that no stage can follow.
// RUN: not par-opt %S/Inputs/chain.mlir --par-verify-annotate 2>&1 | FileCheck %s --check-prefix=IMPORT
// RUN: par-opt %s --par-verify-annotate --split-input-file --verify-diagnostics
// IMPORT: error: has no stage after Annotate

par.stage @s0 <"tp"=2> ranks [0, 1]
// expected-error @below {{is sharded over "dp", which is an axis of no stage}}
par.variable @w parameter : tensor<4xf32> sharding <[{"dp"} ]>

// -----

par.stage @s0 <"tp"=2> ranks [0, 1]
par.step @eval(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{is on stage 2 of 1}}
  %0 = par.negate %x {stage = 2 : i64} : tensor<4x4xf32>
  par.return %0 : tensor<4x4xf32>
}

// -----

par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
// expected-error @below {{has no op on stage 1}}
par.step @eval(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = par.negate %x {stage = 0 : i64} : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
