// The gate refuses the output of Partition, and saved values that only cost memory.
// RUN: par-opt %s --par-verify-recompute --split-input-file --verify-diagnostics
// RUN: par-compile %models/gpt2/model.onnx --set mesh='{pp: 2}' --set pipeline='{cuts: [h.2]}' --set train={} --stop-after=partition -o %t.par > %t.mlir
// RUN: not par-opt %t.mlir --par-verify-recompute 2>&1 | FileCheck %s
// CHECK: error: saves a value for the backward that costs nothing to compute

par.stage @s0 <> ranks [0]
par.fragment @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  // expected-error @below {{is unused after Recompute}}
  %0 = par.exp %x : tensor<4xf32>
  par.return %x : tensor<4xf32>
}

// -----

par.stage @s0 <> ranks [0]
// expected-error @below {{saves its own argument 0 for the backward}}
par.fragment @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  par.return %x : tensor<4xf32>
}
par.fragment @b(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  %0 = par.exp %x : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
!t = !par.dist<tensor<4xf32>, @s0, [{}]>
par.step @train(%x: !par.dist<tensor<2x4xf32>, @s0, [{}, {}]>) {
  par.loop 2 (%x) : (!par.dist<tensor<2x4xf32>, @s0, [{}, {}]>) -> () {
  ^bb0(%i: tensor<i64>, %xi: !t):
    %a = par.run @f(%xi) : (!t) -> !t
    %b = par.run @b(%a) : (!t) -> !t
    par.yield []
  }
  par.return
}

// -----

par.stage @s0 <> ranks [0]
// expected-error @below {{saves a value for the backward that costs nothing to compute}}
par.fragment @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  // expected-note @below {{this one}}
  %0 = par.exp %x : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
par.fragment @b(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stage = @s0, kind = #par.fragment_kind<backward>, local} {
  %0 = par.exp %x : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
!t = !par.dist<tensor<4xf32>, @s0, [{}]>
par.step @train(%x: !par.dist<tensor<2x4xf32>, @s0, [{}, {}]>) {
  par.loop 2 (%x) : (!par.dist<tensor<2x4xf32>, @s0, [{}, {}]>) -> () {
  ^bb0(%i: tensor<i64>, %xi: !t):
    %a = par.run @f(%xi) : (!t) -> !t
    %b = par.run @b(%a) : (!t) -> !t
    par.yield []
  }
  par.return
}
