// Sizes that no machine has are refused before they are added.
// RUN: par-opt %s --par-pack-memory --verify-diagnostics

par.stage @s0 <> ranks [0]
// expected-error @below {{cannot be packed: the items are too large to add}}
par.program @stage0 on @s0 ranks [0] {
  par.buffer @a temp depth 4 : tensor<268435456x1073741824xf32>
  par.entry @eval runs [] microbatches []
}
