// Every write is a select; the scale halves after a bad step and doubles after two good ones.
// RUN: par-opt %s --par-differentiate --par-add-optimizer=kind=momentum --par-scale-loss=initial=4 --par-clip-gradients --par-skip-overflow=growth=2 --par-verify-train | FileCheck %s
// RUN: par-opt %s --par-differentiate --par-add-optimizer --par-scale-loss=initial=4 --par-clip-gradients --par-skip-overflow=growth=0 | FileCheck %s --check-prefix=FIXED
// RUN: not par-opt %s --par-differentiate --par-add-optimizer --par-scale-loss --par-skip-overflow 2>&1 | FileCheck %s --check-prefix=NORM
// RUN: not par-opt %s --par-skip-overflow=growth=-1 2>&1 | FileCheck %s --check-prefix=FAIL

// The values: the gradient is 1, or infinite.
// RUN: par-opt %s --par-differentiate --par-add-optimizer --par-scale-loss=initial=4 --par-clip-gradients --par-skip-overflow=growth=1 --par-interpret | FileCheck %s --check-prefix=GOOD
// RUN: sed -e 's/1.000000e+00/0x7F800000/' %s | par-opt --par-differentiate --par-add-optimizer --par-scale-loss=initial=4 --par-clip-gradients --par-skip-overflow=growth=1 --par-interpret | FileCheck %s --check-prefix=BAD

// NORM: error: {{.*}} has no par.stage_all_reduce with a result for each of its 1 gradients
// FAIL: error: lets the loss scale grow after -1 steps, expected 0 or more

// CHECK-LABEL: par.step @train
// CHECK-SAME: outputs = ["loss", "grad_norm", "loss_scale"]
// CHECK: [[SUM:%.*]] = par.stage_all_reduce
// CHECK: [[W:%.*]], [[V:%.*]] = par.momentum
// CHECK: [[OK:%.*]] = par.is_finite [[SUM]]
// CHECK-DAG: par.select [[OK]], %{{.*}}, %{{.*}} : tensor<i1>, tensor<f32>
// CHECK-DAG: par.write %{{.*}} to @step
// CHECK-DAG: par.write %{{.*}} to @w :
// CHECK-DAG: par.write %{{.*}} to @w.momentum
// CHECK-DAG: par.write [[NEXT:%.*]] to @loss_scale
// CHECK-DAG: par.write %{{.*}} to @good_steps
// CHECK: par.return %{{.*}}, %{{.*}}, [[NEXT]]

// FIXED-NOT: to @loss_scale
// FIXED: par.select
// FIXED-NOT: to @loss_scale
// FIXED: par.return %{{[^,]*}}, %{{[^,]*}} :

// GOOD: train output "loss_scale" tensor<f32> 8
// GOOD: train variable "good_steps" tensor<f32> 0
// GOOD: train variable "loss_scale" tensor<f32> 8
// GOOD: train variable "w" tensor<f32> 0.499
// BAD: train output "loss_scale" tensor<f32> 2
// BAD: train variable "good_steps" tensor<f32> 0
// BAD: train variable "loss_scale" tensor<f32> 2
// BAD: train variable "w" tensor<f32> 0.5
par.variable @w parameter : tensor<f32> value dense<0.5> : tensor<f32>
par.step @eval() -> tensor<f32> attributes {outputs = ["loss"]} {
  %w = par.read @w : tensor<f32>
  %c = par.constant dense<1.000000e+00> : tensor<f32>
  %l = par.multiply %w, %c : tensor<f32>
  par.return %l : tensor<f32>
}
