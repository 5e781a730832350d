// Results of a step on constants, by hand: a matmul, its row sums, a softmax, a gather and its adjoint.
// RUN: par-opt %s --par-interpret -o /dev/null | FileCheck %s

par.step @eval() -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>, tensor<3xf32>)
    attributes {outputs = ["product", "sums", "softmax", "rows", "scattered"]} {
  %a = par.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = par.constant dense<[[0.0, 1.0], [1.0, 0.0]]> : tensor<2x2xf32>
  // CHECK-DAG: eval output "product" tensor<2x2xf32> 2 1 4 3
  %p = par.dot %a, %b contracting [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  // CHECK-DAG: eval output "sums" tensor<2xf32> 3 7
  %s = par.reduce sum %p dims [1] : tensor<2x2xf32> to tensor<2xf32>
  // CHECK-DAG: eval output "softmax" tensor<2xf32> 0.0179862 0.982014
  %m = par.softmax %s dim 0 : tensor<2xf32>
  %i = par.constant dense<[1, 1]> : tensor<2xi64>
  // CHECK-DAG: eval output "rows" tensor<2x2xf32> 3 4 3 4
  %g = par.gather %a, %i dim 0 : tensor<2x2xf32>, tensor<2xi64> to tensor<2x2xf32>
  // CHECK-DAG: eval output "scattered" tensor<3xf32> 0 10 0
  %q = par.index_add %s, %i dim 0 size 3 : tensor<2xf32>, tensor<2xi64> to tensor<3xf32>
  par.return %p, %s, %m, %g, %q : tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>, tensor<3xf32>
}
