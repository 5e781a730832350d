// A loss that is not finite makes the norm so, and the step writes nothing though its gradient is finite.
// DEFINE: %{train} = par-opt --par-differentiate --par-add-optimizer
// DEFINE: %{skip} = --par-skip-overflow=growth=0
// DEFINE: %{run} = %{skip} --par-interpret
// DEFINE: %{infinite} = sed -e 's/dense<2.000000e+00>/dense<0x7F800000>/' %s
// RUN: %{train} %s --par-clip-gradients=loss=true %{skip} --par-verify-train | FileCheck %s
// RUN: %{train} %s --par-clip-gradients=loss=true %{run} | FileCheck %s --check-prefix=GOOD
// RUN: %{infinite} | %{train} --par-clip-gradients=loss=true %{run} | FileCheck %s --check-prefix=BAD
// RUN: %{infinite} | %{train} --par-clip-gradients %{run} | FileCheck %s --check-prefix=GRADIENT

// CHECK: [[FINITE:%.*]] = par.is_finite %{{.*}} : tensor<f32>
// CHECK: [[TEST:%.*]] = par.select [[FINITE]]
// CHECK: par.stage_all_reduce sum %{{.*}}, [[TEST]]
// GOOD: train output "grad_norm" tensor<f32> 1
// GOOD: train variable "w" tensor<f32> 0.499
// BAD: train output "grad_norm" tensor<f32> inf
// BAD: train variable "w" tensor<f32> 0.5
// GRADIENT: train variable "w" tensor<f32> 0.499
par.variable @w parameter : tensor<f32> value dense<0.5> : tensor<f32>
par.step @eval() -> tensor<f32> attributes {outputs = ["loss"]} {
  %w = par.read @w : tensor<f32>
  %c = par.constant dense<2.000000e+00> : tensor<f32>
  %l = par.add %w, %c : tensor<f32>
  par.return %l : tensor<f32>
}
