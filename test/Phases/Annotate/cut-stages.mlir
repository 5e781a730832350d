// An op is on the stage after the last cut on which it depends; one that depends only on parameters goes with its first
// user.
// RUN: split-file %s %t
// RUN: par-opt %S/Inputs/chain.mlir --par-create-stages=plan=%t/starts.yaml --par-cut-stages=plan=%t/starts.yaml | FileCheck %s
// RUN: par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/even.yaml | FileCheck %s
// RUN: par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/node.yaml | FileCheck %s --check-prefix=NODE
// RUN: par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/auto.yaml | FileCheck %s --check-prefix=AUTO
// RUN: not par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/many.yaml 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/counts.yaml 2>&1 | FileCheck %s --check-prefix=COUNTS
// RUN: not par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/few.yaml 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/zero.yaml 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/backwards.yaml 2>&1 | FileCheck %s --check-prefix=BACKWARDS
// RUN: not par-opt %S/Inputs/chain.mlir --par-cut-stages=plan=%t/memory.yaml 2>&1 | FileCheck %s --check-prefix=MEMORY
// RUN: par-opt %t/tail.mlir --par-cut-stages=plan=%t/auto.yaml | FileCheck %s --check-prefix=TAIL
// RUN: par-opt %t/images.mlir --par-cut-stages=plan=%t/auto.yaml | FileCheck %s --check-prefix=IMAGES
// RUN: par-opt %t/bound.mlir --par-cut-stages=plan=%t/even.yaml | FileCheck %s --check-prefix=BOUND
// RUN: par-opt %t/frozen.mlir --par-cut-stages=plan=%t/frozen.yaml | FileCheck %s --check-prefix=FROZEN
// RUN: par-opt %t/decoder.mlir --par-cut-stages=plan=%t/decoder.yaml | FileCheck %s --check-prefix=DECODER

// CHECK: par.gather {{.*}}stage = 0
// CHECK: par.add {{.*}}stage = 0
// CHECK: par.dot {{.*}}stage = 1
// CHECK-NEXT: par.transpose {{.*}}stage = 1
// CHECK-NEXT: par.dot {{.*}}stage = 1
// NODE: par.reduce {{.*}}stage = 0
// NODE: par.dot {{.*}}stage = 1
// NODE: par.add {{.*}}stage = 1
// The solver's stages never go backwards, and both have something to do.
// AUTO: par.gather {{.*}}stage = 0
// AUTO: par.dot {{.*}}stage = 1
// AUTO-NOT: stage = 0
// MANY: many.yaml:2:20: error: cut "h.*" means 2 modules or nodes; a cut names the one that starts the next stage
// COUNTS: counts.yaml:2:20: error: "h.*" matches 2 modules; the counts of 2 stages add up to 3
// FEW: few.yaml:2:20: error: "h.*" matches 2 modules, fewer than the 3 stages
// ZERO: zero.yaml:2:19: error: the cuts leave stage 0 without an op that a parameter flows into
// BACKWARDS: backwards.yaml:2:19: error: the cuts leave stage 1 without an op that a parameter flows into
// BACKWARDS: note: cuts must be in the model's order: "h.0.mlp/MatMul" starts stage 2, but "h.1", which would start stage 1, depends on it
// MEMORY: memory.yaml:2:19: error: no cut into 2 stages: no cut of 6 nodes into 2 stages that fits the memory limits
// MEMORY-SAME: ; try more stages or ranks, more bytes (target.memory), or cuts of your own (pipeline.cuts)
// Ops without a parameter are no last stage of their own, however much they compute.
// TAIL: par.multiply {{.*}}stage = 0
// TAIL: par.multiply {{.*}}stage = 1
// TAIL-COUNT-3: par.tanh {{.*}}stage = 1
// A convolution costs its window at each place of the image, not each place at each other: a twelfth of a matmul here.
// The first stage, which fills the pipeline, takes two of the three matmuls.
// IMAGES: par.convolution {{.*}}stage = 0
// IMAGES: par.dot {{.*}}stage = 0
// IMAGES: par.dot {{.*}}stage = 0
// IMAGES: par.dot {{.*}}stage = 1
// The plan binds the input of the first layer: the ops after a cut are after it all the same.
// BOUND: par.dot {{.*}}stage = 0
// BOUND: par.dot {{.*}}stage = 1
// BOUND-NEXT: par.tanh {{.*}}stage = 1
// BOUND-NEXT: par.add {{.*}}stage = 1
// Keys of a later layer of the stack that a cut names: only the encoder computes them.
// DECODER: par.dot {{.*}}stage = 0
// DECODER-COUNT-3: par.dot {{.*}}stage = 1
// The first three of six layers are frozen and have no backward: as much work as the fourth, which trains. The fifth
// has no gradient of its weight.
// FROZEN-COUNT-4: par.dot {{.*}}stage = 0
// FROZEN-COUNT-2: par.dot {{.*}}stage = 1

//--- starts.yaml
{mesh: {pp: 2}, batch: 4, train: {}, pipeline: {cuts: [h.1]}}
//--- even.yaml
{mesh: {pp: 2}, batch: 4, train: {}, pipeline: {cuts: {h.*: even}}}
//--- node.yaml
{mesh: {pp: 2}, batch: 4, train: {}, pipeline: {cuts: [h.0.mlp/MatMul]}}
//--- auto.yaml
{mesh: {pp: 2}, batch: 4, train: {}}
//--- many.yaml
{mesh: {pp: 2}, batch: 4, train: {},
 pipeline: {cuts: [h.*]}}
//--- counts.yaml
{mesh: {pp: 2}, batch: 4, train: {},
 pipeline: {cuts: {h.*: [1, 2]}}}
//--- few.yaml
{mesh: {pp: 3}, batch: 4, train: {},
 pipeline: {cuts: {h.*: even}}}
//--- zero.yaml
{mesh: {pp: 2}, batch: 4, train: {},
 pipeline: {cuts: [wte]}}
//--- backwards.yaml
{mesh: {pp: 3}, batch: 4, train: {},
 pipeline: {cuts: [h.1, h.0.mlp/MatMul]}}
//--- memory.yaml
{mesh: {pp: 2}, batch: 4, train: {}, target: {memory: 1KB},
 pipeline: {cuts: auto}}
//--- images.mlir
par.variable @c.weight parameter : tensor<8x8x3x3xf32>
par.variable @h.0.weight parameter : tensor<2048x512xf32>
par.variable @h.1.weight parameter : tensor<512x2048xf32>
par.variable @h.2.weight parameter : tensor<2048x512xf32>
par.step @eval(%x: tensor<4x8x16x16xf32>) -> tensor<4x512xf32> attributes {inputs = ["x"], outputs = ["y"]} {
  %c = par.read @c.weight : tensor<8x8x3x3xf32>
  %w0 = par.read @h.0.weight : tensor<2048x512xf32>
  %w1 = par.read @h.1.weight : tensor<512x2048xf32>
  %w2 = par.read @h.2.weight : tensor<2048x512xf32>
  %0 = par.convolution %x, %c strides [1, 1] low [1, 1] high [1, 1] dilations [1, 1] : (tensor<4x8x16x16xf32>, tensor<8x8x3x3xf32>) -> tensor<4x8x16x16xf32> loc(fused<{module = "c", node = "n0", path = "c/Conv"}>["m.py":1:0])
  %1 = par.reshape %0 : tensor<4x8x16x16xf32> to tensor<4x2048xf32> loc(fused<{module = "c", node = "n1", path = "c/Reshape"}>["m.py":1:0])
  %2 = par.dot %1, %w0 contracting [1] x [0] : (tensor<4x2048xf32>, tensor<2048x512xf32>) -> tensor<4x512xf32> loc(fused<{module = "h.0", node = "n2", path = "h.0/MatMul"}>["m.py":2:0])
  %3 = par.dot %2, %w1 contracting [1] x [0] : (tensor<4x512xf32>, tensor<512x2048xf32>) -> tensor<4x2048xf32> loc(fused<{module = "h.1", node = "n3", path = "h.1/MatMul"}>["m.py":3:0])
  %4 = par.dot %3, %w2 contracting [1] x [0] : (tensor<4x2048xf32>, tensor<2048x512xf32>) -> tensor<4x512xf32> loc(fused<{module = "h.2", node = "n4", path = "h.2/MatMul"}>["m.py":4:0])
  par.return %4 : tensor<4x512xf32>
}
//--- tail.mlir
par.variable @h.0.weight parameter : tensor<4x4096xf32>
par.variable @h.1.weight parameter : tensor<4x4096xf32>
par.step @eval(%x: tensor<4x4096xf32>) -> tensor<4x4096xf32> attributes {inputs = ["x"], outputs = ["errors"]} {
  %w0 = par.read @h.0.weight : tensor<4x4096xf32>
  %w1 = par.read @h.1.weight : tensor<4x4096xf32>
  %0 = par.multiply %x, %w0 : tensor<4x4096xf32> loc(fused<{module = "h.0", node = "n0", path = "h.0/Mul"}>["m.py":1:0])
  %1 = par.multiply %0, %w1 : tensor<4x4096xf32> loc(fused<{module = "h.1", node = "n1", path = "h.1/Mul"}>["m.py":2:0])
  %2 = par.tanh %1 : tensor<4x4096xf32> loc(fused<{module = "loss", node = "n2", path = "loss/Tanh"}>["m.py":3:0])
  %3 = par.tanh %2 : tensor<4x4096xf32> loc(fused<{module = "loss", node = "n3", path = "loss/Tanh.1"}>["m.py":4:0])
  %4 = par.tanh %3 : tensor<4x4096xf32> loc(fused<{module = "loss", node = "n4", path = "loss/Tanh.2"}>["m.py":5:0])
  par.return %4 : tensor<4x4096xf32>
}
//--- frozen.yaml
{mesh: {pp: 2}, batch: 64, train: {}}
//--- frozen.mlir
par.variable @h.0.weight frozen : tensor<512x512xf32>
par.variable @h.1.weight frozen : tensor<512x512xf32>
par.variable @h.2.weight frozen : tensor<512x512xf32>
par.variable @h.3.weight parameter : tensor<512x512xf32>
par.variable @h.4.weight frozen : tensor<512x512xf32>
par.variable @h.5.weight parameter : tensor<512x512xf32>
par.step @eval(%x: tensor<64x512xf32>) -> tensor<64x512xf32> attributes {inputs = ["x"], outputs = ["y"]} {
  %w0 = par.read @h.0.weight : tensor<512x512xf32>
  %w1 = par.read @h.1.weight : tensor<512x512xf32>
  %w2 = par.read @h.2.weight : tensor<512x512xf32>
  %w3 = par.read @h.3.weight : tensor<512x512xf32>
  %w4 = par.read @h.4.weight : tensor<512x512xf32>
  %w5 = par.read @h.5.weight : tensor<512x512xf32>
  %0 = par.dot %x, %w0 contracting [1] x [0] : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32> loc(fused<{module = "h.0", node = "n0", path = "h.0/MatMul"}>["m.py":1:0])
  %1 = par.dot %0, %w1 contracting [1] x [0] : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32> loc(fused<{module = "h.1", node = "n1", path = "h.1/MatMul"}>["m.py":2:0])
  %2 = par.dot %1, %w2 contracting [1] x [0] : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32> loc(fused<{module = "h.2", node = "n2", path = "h.2/MatMul"}>["m.py":3:0])
  %3 = par.dot %2, %w3 contracting [1] x [0] : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32> loc(fused<{module = "h.3", node = "n3", path = "h.3/MatMul"}>["m.py":4:0])
  %4 = par.dot %3, %w4 contracting [1] x [0] : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32> loc(fused<{module = "h.4", node = "n4", path = "h.4/MatMul"}>["m.py":5:0])
  %5 = par.dot %4, %w5 contracting [1] x [0] : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32> loc(fused<{module = "h.5", node = "n5", path = "h.5/MatMul"}>["m.py":6:0])
  par.return %5 : tensor<64x512xf32>
}
//--- bound.mlir
par.variable @h.0.weight parameter : tensor<8x8xf32>
par.variable @h.1.weight parameter : tensor<8x8xf32>
par.step @eval(%labels: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {inputs = ["labels"], outputs = ["errors"]} {
  %x = par.constant dense<1.0> : tensor<4x8xf32>
  %w0 = par.read @h.0.weight : tensor<8x8xf32>
  %w1 = par.read @h.1.weight : tensor<8x8xf32>
  %0 = par.dot %x, %w0 contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(fused<{module = "h.0", node = "n0", path = "h.0/MatMul"}>["m.py":1:0])
  %1 = par.dot %0, %w1 contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(fused<{module = "h.1", node = "n1", path = "h.1/MatMul"}>["m.py":2:0])
  %2 = par.tanh %1 : tensor<4x8xf32> loc(fused<{module = "head", node = "n2", path = "head/Tanh"}>["m.py":3:0])
  %3 = par.add %2, %labels : tensor<4x8xf32> loc(fused<{module = "head", node = "n3", path = "head/Add"}>["m.py":4:0])
  par.return %3 : tensor<4x8xf32>
}
//--- decoder.yaml
{mesh: {pp: 2}, batch: 4, train: {}, pipeline: {cuts: [decoder.0]}}
//--- decoder.mlir
par.variable @encoder.weight parameter : tensor<8x8xf32>
par.variable @decoder.0.weight parameter : tensor<8x8xf32>
par.variable @decoder.1.keys.weight parameter : tensor<8x8xf32>
par.step @eval(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x4xf32> attributes {inputs = ["x", "y"], outputs = ["scores"]} {
  %w = par.read @encoder.weight : tensor<8x8xf32>
  %w0 = par.read @decoder.0.weight : tensor<8x8xf32>
  %w1 = par.read @decoder.1.keys.weight : tensor<8x8xf32>
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(fused<{module = "encoder", node = "n0", path = "encoder/MatMul"}>["m.py":1:0])
  %1 = par.dot %y, %w0 contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(fused<{module = "decoder.0", node = "n1", path = "decoder.0/MatMul"}>["m.py":2:0])
  %2 = par.dot %0, %w1 contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(fused<{module = "decoder.1.keys", node = "n2", path = "decoder.1.keys/MatMul"}>["m.py":3:0])
  %3 = par.dot %1, %2 contracting [1] x [1] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32> loc(fused<{module = "decoder.1", node = "n3", path = "decoder.1/MatMul"}>["m.py":4:0])
  par.return %3 : tensor<4x4xf32>
}
