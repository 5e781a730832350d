// The gate refuses the output of Split: values without shardings.
// RUN: par-opt %s --par-verify-propagate --split-input-file --verify-diagnostics
// RUN: par-compile %models/mlp/model.onnx --set train={} --stop-after=split > %t.mlir
// RUN: not par-opt %t.mlir --par-verify-propagate 2>&1 | FileCheck %s --check-prefix=SPLIT
// SPLIT: error: {{.*}}argument 0 has no sharding after Propagate

par.stage @s0 <"dp"=2> ranks [0, 1]
par.variable @w parameter : tensor<4xf32>
par.step @eval() -> !par.dist<tensor<4xf32>, @s0, ?> {
  // expected-error @below {{result 0 has no sharding after Propagate}}
  %0 = par.read @w : !par.dist<tensor<4xf32>, @s0, ?>
  par.return %0 : !par.dist<tensor<4xf32>, @s0, ?>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
// expected-error @below {{argument 0 has an open sharding after Propagate}}
par.fragment @f(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<forward>, shardings = [#par.sharding<[{"dp", ?}]>]} {
  par.return %x : tensor<4xf32>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32>
    attributes {stage = @s0, kind = #par.fragment_kind<forward>, shardings = [#par.sharding<[{}, {"dp"}]>]} {
  // expected-error @below {{still has its factor b cut; -par-expand-composites takes it apart}}
  %0 = par.softmax %x dim 1 {shardings = [#par.sharding<[{}, {"dp"}]>]} : tensor<4x4xf32>
  par.return %0 : tensor<4x4xf32>
}
