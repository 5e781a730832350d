// A node is on one stage in all entries; ops that have no node there go with what they depend on.
// RUN: par-opt %s --par-align-stages | FileCheck %s

// CHECK: par.step @prefill
// CHECK: par.dot {{.*}}stage = 0
// CHECK: par.add {{.*}}stage = 0
// CHECK: par.dot {{.*}}stage = 1
// CHECK: par.negate {{.*}}stage = 1
#n0 = loc(fused<{module = "h.0", node = "n0", path = "h.0/MatMul"}>["m.py":1:0])
#n1 = loc(fused<{module = "h.1", node = "n1", path = "h.1/MatMul"}>["m.py":2:0])
par.stage @s0 <> ranks [0]
par.stage @s1 <> ranks [1]
par.variable @a parameter : tensor<8x8xf32>
par.variable @b parameter : tensor<8x8xf32>
par.step @predict(%x: tensor<1x8xf32>) -> tensor<1x8xf32> attributes {inputs = ["x"], outputs = ["y"]} {
  %a = par.read @a : tensor<8x8xf32>
  %b = par.read @b : tensor<8x8xf32>
  %0 = par.dot %x, %a contracting [1] x [0] {stage = 0 : i64}
    : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32> loc(#n0)
  %1 = par.dot %0, %b contracting [1] x [0] {stage = 1 : i64}
    : (tensor<1x8xf32>, tensor<8x8xf32>) -> tensor<1x8xf32> loc(#n1)
  par.return %1 : tensor<1x8xf32>
}
par.step @prefill(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {inputs = ["prefill.x"], outputs = ["prefill.y"]} {
  %a = par.read @a : tensor<8x8xf32>
  %b = par.read @b : tensor<8x8xf32>
  %0 = par.dot %x, %a contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#n0)
  %1 = par.add %0, %x : tensor<4x8xf32>
  %2 = par.dot %1, %b contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(#n1)
  %3 = par.negate %2 : tensor<4x8xf32>
  par.return %3 : tensor<4x8xf32>
}
