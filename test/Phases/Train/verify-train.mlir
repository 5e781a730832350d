// The gate accepts the output of Train, and refuses that of Annotate and steps with wrong or missing writes and marks.
// RUN: par-opt %s --par-verify-train --split-input-file --verify-diagnostics
// RUN: par-compile %models/mlp/model.onnx --set train={} --stop-after=annotate > %t.mlir
// RUN: not par-opt %t.mlir --par-verify-train 2>&1 | FileCheck %s --check-prefix=ANNOTATE
// ANNOTATE: error: {{.*}}has no @train beside it after Train

// Accepted.
par.variable @w parameter : tensor<f32>
par.variable @w.m state of @w : tensor<f32>
par.variable @n counter : tensor<f32>
par.step @eval() -> tensor<f32> {
  %w = par.read @w : tensor<f32>
  par.return %w : tensor<f32>
}
par.step @train() -> tensor<f32> {
  %w = par.read @w : tensor<f32>
  %n = par.read @n : tensor<f32>
  %ct = par.cotangent %w, %n : tensor<f32>
  %g = par.gradient %ct of @w : tensor<f32>
  par.write %g to @w : tensor<f32>
  par.write %g to @w.m : tensor<f32>
  par.write %n to @n : tensor<f32>
  par.return %w : tensor<f32>
}

// -----

par.variable @w parameter : tensor<f32>
// expected-error @below {{has no @train beside it after Train}}
par.step @eval() -> tensor<f32> {
  %w = par.read @w : tensor<f32>
  par.return %w : tensor<f32>
}

// -----

// expected-error @below {{has no par.cotangent}}
par.step @train() -> tensor<f32> {
  %0 = par.constant dense<0.0> : tensor<f32>
  par.return %0 : tensor<f32>
}

// -----

par.step @train(%x: tensor<f32>) -> tensor<f32> {
  %0 = par.cotangent %x, %x : tensor<f32>
  // expected-error @below {{is the second one of its step}}
  %1 = par.cotangent %x, %x : tensor<f32>
  par.return %0 : tensor<f32>
}

// -----

par.variable @w frozen : tensor<f32>
par.step @train(%x: tensor<f32>) -> tensor<f32> {
  %0 = par.cotangent %x, %x : tensor<f32>
  // expected-error @below {{is of @w, which is no parameter}}
  %1 = par.gradient %0 of @w : tensor<f32>
  par.return %0 : tensor<f32>
}

// -----

par.variable @w parameter : tensor<f32>
par.step @train(%x: tensor<f32>) -> tensor<f32> {
  %0 = par.cotangent %x, %x : tensor<f32>
  %1 = par.gradient %0 of @w : tensor<f32>
  // expected-error @below {{is the second gradient of @w}}
  %2 = par.gradient %0 of @w : tensor<f32>
  par.return %0 : tensor<f32>
}

// -----

par.variable @w parameter : tensor<f32>
par.step @train(%x: tensor<f32>) -> tensor<f32> {
  %0 = par.cotangent %x, %x : tensor<f32>
  // expected-error @below {{does not depend on the loss's cotangent}}
  %1 = par.gradient %x of @w : tensor<f32>
  par.return %0 : tensor<f32>
}

// -----

par.variable @w parameter : tensor<f32>
par.step @train(%x: tensor<f32>) -> tensor<f32> {
  %0 = par.cotangent %x, %x : tensor<f32>
  // expected-error @below {{is there, but @w is not written}}
  %1 = par.gradient %0 of @w : tensor<f32>
  par.return %0 : tensor<f32>
}

// -----

par.variable @w parameter : tensor<f32>
par.step @train(%x: tensor<f32>) -> tensor<f32> {
  %0 = par.cotangent %x, %x : tensor<f32>
  %1 = par.gradient %0 of @w : tensor<f32>
  // expected-error @below {{changes @w by a value that does not depend on @w's gradient}}
  par.write %0 to @w : tensor<f32>
  par.return %0 : tensor<f32>
}

// -----

par.variable @w parameter : tensor<f32>
par.step @train(%x: tensor<f32>) -> tensor<f32> {
  %0 = par.cotangent %x, %x : tensor<f32>
  %1 = par.gradient %0 of @w : tensor<f32>
  par.write %1 to @w : tensor<f32>
  // expected-error @below {{is the second write of @w}}
  par.write %1 to @w : tensor<f32>
  par.return %0 : tensor<f32>
}

// -----

par.variable @w frozen : tensor<f32>
par.step @train(%x: tensor<f32>) -> tensor<f32> {
  %0 = par.cotangent %x, %x : tensor<f32>
  // expected-error @below {{changes @w, which is frozen}}
  par.write %x to @w : tensor<f32>
  par.return %0 : tensor<f32>
}

// -----

par.variable @w parameter : tensor<f32>
par.step @predict(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{is allowed in @train only, not in @predict}}
  par.write %x to @w : tensor<f32>
  par.return %x : tensor<f32>
}

// -----

par.stage @s0 <> ranks [0]
par.step @train(%x: !par.dist<tensor<f32>, @s0, []>) -> !par.dist<tensor<f32>, @s0, []> {
  // expected-error @below {{is not allowed in a step after Train}}
  %0 = par.reshard %x : !par.dist<tensor<f32>, @s0, []> to !par.dist<tensor<f32>, @s0, []>
  par.return %0 : !par.dist<tensor<f32>, @s0, []>
}

// -----

par.stage @s0 <> ranks [0]
par.variable @w parameter : tensor<f32>
par.step @train() -> !par.dist<tensor<f32>, @s0, []> {
  // expected-error @below {{after Train, expected a tensor}}
  %0 = par.read @w : !par.dist<tensor<f32>, @s0, []>
  par.return %0 : !par.dist<tensor<f32>, @s0, []>
}
