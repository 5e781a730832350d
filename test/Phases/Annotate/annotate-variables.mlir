// Rules overlay each other dim by dim, a fused dim is sharded inside its parts, untrained parameters are frozen.
// RUN: split-file %s %t
// RUN: par-opt %S/Inputs/chain.mlir --par-annotate-variables=plan=%t/plan.yaml | FileCheck %s
// RUN: not par-opt %S/Inputs/chain.mlir --par-annotate-variables=plan=%t/blocks.yaml 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: not par-opt %S/Inputs/chain.mlir --par-annotate-variables=plan=%t/whole.yaml 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: not par-opt %S/Inputs/chain.mlir --par-annotate-variables=plan=%t/nothing.yaml 2>&1 | FileCheck %s --check-prefix=NOTHING

// RUN: par-opt %S/Inputs/chain.mlir --par-annotate-variables=plan=%t/init.yaml | FileCheck %s --check-prefix=FANS

// sqrt(6 / (16 + 8)), sqrt(6 / 24): the weights' [out, in] are 16 x 8 and 8 x 24.
// FANS: par.variable @wte.weight parameter : tensor<16x8xf32> init "uniform(5.00000000000000000e-01)"
// FANS: par.variable @h.0.attn.weight {{.*}} init "uniform(5.00000000000000000e-01)"
// CHECK: par.variable @wte.weight parameter : tensor<16x8xf32> sharding <[{"tp.0", "tp.1", ?}, {?}{{ ?}}]> init "normal(0.5)"
// CHECK: par.variable @h.0.attn.weight parameter : tensor<8x3x8xf32> stored tensor<8x24xf32> sharding <[{?}, {?}, {"tp.0", "tp.1", ?}{{ ?}}]>
// CHECK: par.variable @h.0.mlp.weight frozen : tensor<8x8xf32> sharding <[{}, {"dp"}{{ ?}}]>
// CHECK: par.variable @h.1.mlp.weight parameter : tensor<8x8xf32> sharding <[{"dp", ?}, {"tp.0", "tp.1", ?}{{ ?}}]>
// BLOCKS: blocks.yaml:3:42: error: blocks is 2, and the graph takes dim 1 of h.0.attn.weight apart into 3 parts
// WHOLE: whole.yaml:2:37: error: blocks is 2, and the graph takes dim 0 of wte.weight apart into 1 part; without blocks its rows are sharded in order, and a rank gathers the others that it needs
// NOTHING: nothing.yaml:1:9: error: pattern "attn.wieght" matches no parameter, module or value
// NOTHING: note: nearest is "attn.weight" (1 parameter); write "attn.wieght?" if it may be absent

//--- plan.yaml
mesh: {dp: 2, tp: 4}
batch: 4
train: {freeze: [h.0.mlp], init: {wte.weight: normal(0.5)}}
shard:
  wte.weight: {0: tp}
  attn.weight: {1: tp, blocks: 3}
  mlp.weight: {0: dp, 1: tp}
  h.0.mlp.weight: {0: none, 1: dp, closed: true}
//--- init.yaml
train: {init: {wte.weight: xavier, attn.weight: kaiming}}
//--- blocks.yaml
mesh: {tp: 4}
shard:
  h.0.attn.weight: {-1: [tp], blocks:    2}
//--- whole.yaml
mesh: {tp: 4}
shard: {wte.weight: {0: tp, blocks: 2}}
//--- nothing.yaml
shard: {attn.wieght: {0: none}}
