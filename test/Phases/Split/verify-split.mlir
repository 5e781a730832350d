// The gate refuses the output of the phase before: tensor ops in a step, plain tensors, step ops in a fragment.
// RUN: par-opt %s --par-verify-split --split-input-file --verify-diagnostics
// RUN: par-compile %models/mlp/model.onnx --set train={} --stop-after=train > %t.mlir
// RUN: not par-opt %t.mlir --par-verify-split 2>&1 | FileCheck %s --check-prefix=TRAIN
// TRAIN: error: {{.*}}after Split, expected a !par.dist

par.step @eval(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{may not stand in a step after Split; it belongs in a fragment}}
  %0 = par.negate %x : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.variable @w parameter : tensor<4xf32>
par.step @eval() -> tensor<4xf32> {
  // expected-error @below {{after Split, expected a !par.dist}}
  %0 = par.read @w : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.stage @s0 <> ranks [0]
par.variable @w parameter : tensor<4xf32>
par.fragment @f() -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  // expected-error @below {{may not stand in a fragment}}
  %0 = par.read @w : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
