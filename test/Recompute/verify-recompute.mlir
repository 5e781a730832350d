// The gate refuses what Partition leaves where everything is to be computed again, and results that nobody uses.
// RUN: par-opt %s --par-verify-recompute=mode=full --split-input-file --verify-diagnostics
// RUN: not par-opt %s --par-verify-recompute=mode=some --split-input-file 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not par-opt %s --par-verify-recompute="mode=each each=h.{" --split-input-file 2>&1 | FileCheck %s --check-prefix=EACH
// RUN: par-compile %models/mlp/model.onnx --set train={} --stop-after=partition > %t.mlir
// RUN: not par-opt %t.mlir --par-verify-recompute=mode=full 2>&1 | FileCheck %s --check-prefix=PARTITION
// MODE: error: mode is none, full or each, found "some"
// EACH: error: each is "h.{": "{" without "}"
// PARTITION: error: 'par.run' op takes result {{[0-9]+}} of @train.s0.forward, which is to be computed again

par.stage @s0 <> ranks [0]
par.fragment @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %0 = par.exp %x : tensor<4xf32>
  %1 = par.tanh %x : tensor<4xf32>
  par.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
par.fragment @b(%d: tensor<4xf32>) -> tensor<4xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  par.return %d : tensor<4xf32>
}
par.step @train(%x: !par.dist<tensor<4xf32>, @s0, [{} ]>) -> !par.dist<tensor<4xf32>, @s0, [{} ]> {
  // expected-note @below {{kept from here}}
  %f:2 = par.run @f(%x) : (!par.dist<tensor<4xf32>, @s0, [{} ]>) -> (!par.dist<tensor<4xf32>, @s0, [{} ]>, !par.dist<tensor<4xf32>, @s0, [{} ]>)
  // expected-error @below {{takes result 1 of @f, which is to be computed again}}
  %b = par.run @b(%f#1) : (!par.dist<tensor<4xf32>, @s0, [{} ]>) -> !par.dist<tensor<4xf32>, @s0, [{} ]>
  par.return %b : !par.dist<tensor<4xf32>, @s0, [{} ]>
}

// -----

par.stage @s0 <> ranks [0]
par.fragment @f(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  par.return %x : tensor<4xf32>
}
par.step @train(%x: !par.dist<tensor<4xf32>, @s0, [{} ]>) -> !par.dist<tensor<4xf32>, @s0, [{} ]> {
  // expected-error @below {{gives result 0, which nobody uses}}
  %f = par.run @f(%x) : (!par.dist<tensor<4xf32>, @s0, [{} ]>) -> !par.dist<tensor<4xf32>, @s0, [{} ]>
  par.return %x : !par.dist<tensor<4xf32>, @s0, [{} ]>
}
