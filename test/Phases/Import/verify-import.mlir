// The output of Import passes its gate; that of later phases does not.
// RUN: echo "module {}" | par-opt --par-read-onnx="model=%models/mlp/model.onnx train=true" --par-unfold-dims --par-verify-import -
// RUN: par-opt --par-verify-import --split-input-file --verify-diagnostics %s

// expected-error@below {{has no step after Import}}
module {}

// -----

// expected-error@below {{'par.variable' op is of kind copy, which Import does not make}}
par.variable @m copy of @w : tensor<4xf32>
par.variable @w parameter : tensor<4xf32>

// -----

// expected-error@below {{'par.variable' op is sharded or placed after Import}}
par.variable @w parameter : tensor<4xf32> sharding <[{"tp"}]>

// -----

// expected-error@below {{'par.stage' op is in a module after Import}}
par.stage @s0 <"dp"=2> ranks [0, 1]

// -----

// expected-error@below {{'par.step' op is @train, expected @eval or @predict}}
par.step @train(%x: tensor<4xf32>) -> tensor<4xf32> {
  par.return %x : tensor<4xf32>
}

// -----

par.step @eval(%x: tensor<4xf32>) -> tensor<4xf32> {
  par.return %x : tensor<4xf32>
}
// expected-error@below {{'par.step' op is the second step after Import}}
par.step @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
  par.return %x : tensor<4xf32>
}

// -----

par.variable @w parameter : tensor<4xf32>
par.step @eval(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'par.write' op is in a step after Import}}
  par.write %x to @w : tensor<4xf32>
  par.return %x : tensor<4xf32>
}

// -----

par.step @eval(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'par.negate' op has a location that names no ONNX node}}
  %0 = par.negate %x : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}

// -----

par.variable @w parameter : tensor<4xf32>
par.step @eval() -> !par.dist<tensor<4xf32>, @s0, ?> {
  // expected-error@below {{'par.read' op has a result that is no tensor after Import}}
  %0 = par.read @w : !par.dist<tensor<4xf32>, @s0, ?>
  par.return %0 : !par.dist<tensor<4xf32>, @s0, ?>
}
