// PyTorch's GPT-2 becomes a step on one device whose batch dim is a dim of every activation.
// RUN: echo "module {}" | par-opt --par-read-onnx="model=%models/gpt2/model.onnx train=true" - | FileCheck %s
// RUN: echo "module {}" | par-opt --par-read-onnx="model=%models/gpt2/model.onnx train=true" -mlir-print-debuginfo - \
// RUN:   | FileCheck %s --check-prefix=LOC

// Weights are variables that say where their values lie; the tied embedding is one of them, read once.
// CHECK: par.variable @model.transformer.wpe.weight parameter : tensor<32x64xf32> init "normal(0.02)"
// CHECK-SAME: source {{{.*}}length = 8192 : i64, offset = {{[0-9]+}} : i64}
// CHECK: par.variable @model.transformer.h.0.ln_1.weight parameter : tensor<64xf32> init "ones"
// CHECK-NOT: wte
// CHECK: par.step @eval(%[[ids:.*]]: tensor<8x32xi64>, %[[labels:.*]]: tensor<8x32xi64>) -> tensor<f32>
// CHECK-SAME: inputs = ["input_ids", "labels"], outputs = ["loss"]
// CHECK: %[[wpe:.*]] = par.read @model.transformer.wpe.weight
// CHECK: %[[wte:.*]] = par.read @model.lm_head.weight
// CHECK-NOT: par.read

// Positions 0..31 are rows of the table, not a lookup.
// CHECK: par.gather %[[wte]], %[[ids]] dim 0
// CHECK: par.broadcast_in_dim %[[wpe]] dims [1, 2]
// The exporter's [256, 64] is gone, and so is its sequence.
// CHECK: par.dot %{{.*}} contracting [2] x [0] : (tensor<8x32x64xf32>, tensor<64x192xf32>) -> tensor<8x32x192xf32>
// CHECK: par.slice %{{.*}} [0, 0, 64] to [8, 32, 128] by [1, 1, 1]
// The causal mask, 8x1x32x32 in the file, is computed once for all rows of the batch.
// CHECK: %[[row:.*]] = par.iota dim 0 : tensor<32x32xi64>
// CHECK: %[[column:.*]] = par.iota dim 1 : tensor<32x32xi64>
// CHECK: %[[mask:.*]] = par.compare le %[[column]], %[[row]]
// CHECK: %[[added:.*]] = par.select %[[mask]]
// CHECK: par.broadcast_in_dim %[[added]] dims [2, 3] : tensor<32x32xf32> to tensor<8x4x32x32xf32>
// CHECK-NOT: par.reshape {{.*}} to tensor<256x

// The head multiplies by the table as it is; the mean is a sum divided by the count of labels.
// CHECK: %[[logits:.*]] = par.dot %{{.*}}, %[[wte]] contracting [2] x [1]
// CHECK: %[[padded:.*]] = par.pad %[[labels]] low [0, 0] high [0, 1] value -100
// CHECK: %[[shifted:.*]] = par.slice %[[padded]] [0, 1] to [8, 33]
// CHECK: par.cross_entropy %[[logits]], %[[shifted]] ignore -100
// CHECK: %[[sum:.*]] = par.reduce sum %{{.*}} dims [0, 1]
// CHECK: %[[counted:.*]] = par.compare ne %[[shifted]]
// CHECK: %[[count:.*]] = par.reduce sum
// CHECK: %[[loss:.*]] = par.divide %[[sum]], %[[count]]
// CHECK: par.return %[[loss]]

// LOC: #[[line:loc[0-9]+]] = loc("pytorch_utils.py":119:0)
// LOC: module = "model.transformer.h.0.mlp.c_fc", node = "node_addmm_2", path = "model.transformer.h.0.mlp.c_fc/Gemm"}>[#[[line]]]
