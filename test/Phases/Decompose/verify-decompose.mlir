// The gate refuses the output of Recompute if a collective works along an inner dim.
// RUN: par-opt %s --par-verify-decompose --split-input-file --verify-diagnostics

par.stage @s0 <"tp"=2> ranks [0, 1]
par.fragment @forward(%x: tensor<4x8xf32>) -> tensor<4x16xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  // expected-error @below {{works along another dim than 0 in fragment @forward after Decompose}}
  %g = par.all_gather %x dims [1] over ["tp"] : (tensor<4x8xf32>) -> tensor<4x16xf32>
  par.return %g : tensor<4x16xf32>
}

// -----

par.stage @s0 <"tp"=2> ranks [0, 1]
par.fragment @forward(%x: tensor<4x8xf32>) -> tensor<8x8xf32> attributes {stage = @s0, kind = #par.fragment_kind<forward>, local} {
  %g = par.all_gather %x dims [0] over ["tp"] : (tensor<4x8xf32>) -> tensor<8x8xf32>
  par.return %g : tensor<8x8xf32>
}
