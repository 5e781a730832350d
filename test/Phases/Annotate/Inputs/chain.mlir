// Two blocks with a fused weight of three parts, an embedding that the head shares, and data that needs no stage.
par.variable @wte.weight parameter : tensor<16x8xf32> init "normal(0.02)"
par.variable @h.0.attn.weight parameter : tensor<8x3x8xf32> stored tensor<8x24xf32>
par.variable @h.0.mlp.weight parameter : tensor<8x8xf32>
par.variable @h.1.mlp.weight parameter : tensor<8x8xf32>
par.step @eval(%ids: tensor<4xi64>) -> tensor<4x16xf32> attributes {inputs = ["ids"], outputs = ["logits"]} {
  %wte = par.read @wte.weight : tensor<16x8xf32>
  %qkv = par.read @h.0.attn.weight : tensor<8x3x8xf32>
  %w0 = par.read @h.0.mlp.weight : tensor<8x8xf32>
  %w1 = par.read @h.1.mlp.weight : tensor<8x8xf32>
  %0 = par.gather %wte, %ids dim 0 : tensor<16x8xf32>, tensor<4xi64> to tensor<4x8xf32> loc(fused<{module = "wte", node = "n0", path = "wte/Gather"}>["m.py":1:0])
  %1 = par.dot %0, %qkv contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x3x8xf32>) -> tensor<4x3x8xf32> loc(fused<{module = "h.0.attn", node = "n1", path = "h.0.attn/MatMul"}>["m.py":2:0])
  %2 = par.reduce sum %1 dims [1] : tensor<4x3x8xf32> to tensor<4x8xf32> loc(fused<{module = "h.0.attn", node = "n2", path = "h.0.attn/ReduceSum"}>["m.py":3:0])
  %3 = par.dot %2, %w0 contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(fused<{module = "h.0.mlp", node = "n3", path = "h.0.mlp/MatMul"}>["m.py":4:0])
  %4 = par.add %2, %3 : tensor<4x8xf32> loc(fused<{module = "h.0", node = "n4", path = "h.0/Add"}>["m.py":5:0])
  %5 = par.dot %4, %w1 contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(fused<{module = "h.1.mlp", node = "n5", path = "h.1.mlp/MatMul"}>["m.py":6:0])
  %6 = par.transpose %wte [1, 0] : tensor<16x8xf32> to tensor<8x16xf32> loc(fused<{module = "lm_head", node = "n6", path = "lm_head/Transpose"}>["m.py":7:0])
  %7 = par.dot %5, %6 contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32> loc(fused<{module = "lm_head", node = "n7", path = "lm_head/MatMul"}>["m.py":8:0])
  par.return %7 : tensor<4x16xf32>
}
