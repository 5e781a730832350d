// With the third stage on another host, the smallest transfer goes there: 4x4, though 4x8 is then sent within the
// first.
// RUN: split-file %s %t
// RUN: sed 's#ONE#%t/one.yaml#' %t/plan.yaml > %t/flat.yaml
// RUN: sed 's#ONE#%t/two.yaml#' %t/plan.yaml > %t/hosts.yaml
// RUN: par-opt %t/chain.mlir --par-create-stages=plan=%t/flat.yaml --par-cut-stages=plan=%t/flat.yaml | FileCheck %s --check-prefix=FLAT
// RUN: par-opt %t/chain.mlir --par-create-stages=plan=%t/hosts.yaml --par-cut-stages=plan=%t/hosts.yaml | FileCheck %s --check-prefix=HOSTS
// FLAT: par.dot {{.*}}stage = 0
// FLAT: par.dot {{.*}}stage = 0
// FLAT: par.dot {{.*}}stage = 1
// FLAT: par.dot {{.*}}stage = 2
// HOSTS: par.dot {{.*}}stage = 0
// HOSTS: par.dot {{.*}}stage = 1
// HOSTS: par.dot {{.*}}stage = 2
// HOSTS: par.dot {{.*}}stage = 2
//--- plan.yaml
{mesh: {pp: 3}, batch: 4, train: {}, target: {device: cpu, hardware: "ONE"}}
//--- one.yaml
{name: one, peak: {f32: 1000000000, f64: 1000000000}, memory: 1000000000, link: 10, latency: 10, launch: 1000}
//--- two.yaml
{name: two, peak: {f32: 1000000000, f64: 1000000000}, memory: 1000000000, link: 10, latency: 10, launch: 1000, ranks: 2, between: {link: 1, latency: 100}}
//--- chain.mlir
par.variable @h.0.weight parameter : tensor<8x8xf32>
par.variable @h.1.weight parameter : tensor<8x4xf32>
par.variable @h.2.weight parameter : tensor<4x6xf32>
par.variable @h.3.weight parameter : tensor<6x2xf32>
par.step @eval(%x: tensor<4x8xf32>) -> tensor<4x2xf32> attributes {inputs = ["x"], outputs = ["y"]} {
  %w0 = par.read @h.0.weight : tensor<8x8xf32>
  %w1 = par.read @h.1.weight : tensor<8x4xf32>
  %w2 = par.read @h.2.weight : tensor<4x6xf32>
  %w3 = par.read @h.3.weight : tensor<6x2xf32>
  %0 = par.dot %x, %w0 contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc(fused<{module = "h.0", node = "n0", path = "h.0/MatMul"}>["m.py":1:0])
  %1 = par.dot %0, %w1 contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc(fused<{module = "h.1", node = "n1", path = "h.1/MatMul"}>["m.py":2:0])
  %2 = par.dot %1, %w2 contracting [1] x [0] : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32> loc(fused<{module = "h.2", node = "n2", path = "h.2/MatMul"}>["m.py":3:0])
  %3 = par.dot %2, %w3 contracting [1] x [0] : (tensor<4x6xf32>, tensor<6x2xf32>) -> tensor<4x2xf32> loc(fused<{module = "h.3", node = "n3", path = "h.3/MatMul"}>["m.py":4:0])
  par.return %3 : tensor<4x2xf32>
}
