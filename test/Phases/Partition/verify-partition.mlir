// The gate refuses the output of Propagate: global fragments, shardings, reshards in a step.
// RUN: par-opt %s --par-verify-partition --split-input-file --verify-diagnostics
// RUN: par-compile %models/mlp/model.onnx --set train={} --stop-after=propagate > %t.mlir
// RUN: not par-opt %t.mlir --par-verify-partition 2>&1 | FileCheck %s --check-prefix=PROPAGATE
// PROPAGATE: error: {{.*}}is not local after Partition

par.stage @s0 <"dp"=2> ranks [0, 1]
// expected-error @below {{is not local after Partition}}
par.fragment @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
  par.return %x : tensor<4xf32>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  // expected-error @below {{still carries a sharding after Partition}}
  %0 = par.negate %x {shardings = [#par.sharding<[{"dp"}]>]} : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.fragment @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  // expected-error @below {{is not allowed in a local fragment}}
  %0 = par.constrain %x <[{}]> : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.stage @s0 <"dp"=2> ranks [0, 1]
par.step @eval(%x: !par.dist<tensor<4xf32>, @s0, [{}], unreduced={"dp"}>) -> !par.dist<tensor<4xf32>, @s0, [{}]> {
  // expected-error @below {{is not allowed in a step after Partition}}
  %0 = par.reshard %x : <tensor<4xf32>, @s0, [{}], unreduced={"dp"}> to <tensor<4xf32>, @s0, [{}]>
  par.return %0 : !par.dist<tensor<4xf32>, @s0, [{}]>
}
