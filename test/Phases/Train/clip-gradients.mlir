// The norm over all gradients is a result of the step; with a threshold every update takes the clipped gradient.
// RUN: par-opt %s --par-differentiate --par-add-optimizer --par-clip-gradients="clip=1.5" | FileCheck %s
// RUN: par-opt %s --par-differentiate --par-add-optimizer --par-clip-gradients | FileCheck %s --check-prefix=OFF
// RUN: par-opt %s --par-differentiate --par-add-optimizer --par-clip-gradients="value=0.5" | FileCheck %s --check-prefix=VALUE

// CHECK: par.variable @clip{{ +}}hyperparameter : tensor<f32> value dense<1.500000e+00>
// CHECK-LABEL: par.step @train() -> (tensor<f32>, tensor<f32>)
// CHECK-SAME: outputs = ["loss", "grad_norm"]
// CHECK-DAG: [[GA:%.*]] = par.gradient %{{.*}} of @a
// CHECK-DAG: [[GB:%.*]] = par.gradient %{{.*}} of @b
// CHECK: [[SA:%.*]] = par.multiply [[GA]], [[GA]] : tensor<4xf32>
// CHECK: [[QA:%.*]] = par.reduce{{ +}}sum [[SA]] dims [0]
// CHECK: [[QB:%.*]] = par.multiply [[GB]], [[GB]] : tensor<f32>
// CHECK: [[T:%.*]]:2 = par.stage_all_reduce{{ +}}sum [[QA]], [[QB]]
// CHECK: [[NA:%.*]] = par.sqrt [[T]]#0
// CHECK: [[CLIP:%.*]] = par.read @clip
// CHECK: [[SAFE:%.*]] = par.add [[NA]],
// CHECK: [[RATIO:%.*]] = par.divide [[CLIP]], [[SAFE]]
// CHECK: [[COEF:%.*]] = par.minimum [[RATIO]],
// CHECK: [[SPREAD:%.*]] = par.broadcast_in_dim [[COEF]] dims []
// CHECK: [[CA:%.*]] = par.multiply [[GA]], [[SPREAD]]
// CHECK: par.sqrt [[T]]#1
// CHECK: [[CB:%.*]] = par.multiply [[GB]],
// CHECK: par.sgd %{{.*}}, [[CA]],
// CHECK: par.sgd %{{.*}}, [[CB]],
// CHECK: par.return %{{.*}}, [[NA]]

// With a value each element by itself; the norm is that of all there was.
// VALUE: par.variable @clip{{ +}}hyperparameter : tensor<f32> value dense<5.000000e-01>
// VALUE-DAG: [[GA:%.*]] = par.gradient %{{.*}} of @a
// VALUE-DAG: [[GB:%.*]] = par.gradient %{{.*}} of @b
// VALUE: par.multiply [[GA]], [[GA]]
// VALUE: [[NORM:%.*]] = par.sqrt
// VALUE: [[CLIP:%.*]] = par.read @clip
// VALUE: [[MOST:%.*]] = par.broadcast_in_dim [[CLIP]] dims []
// VALUE: [[LOW:%.*]] = par.minimum [[GA]], [[MOST]]
// VALUE: [[LEAST:%.*]] = par.negate [[MOST]]
// VALUE: [[CA:%.*]] = par.maximum [[LOW]], [[LEAST]]
// VALUE: [[LOW:%.*]] = par.minimum [[GB]], [[CLIP]]
// VALUE: [[CB:%.*]] = par.maximum [[LOW]],
// VALUE-NOT: par.sqrt
// VALUE: par.sgd %{{.*}}, [[CA]],
// VALUE: par.sgd %{{.*}}, [[CB]],
// VALUE: par.return %{{.*}}, [[NORM]]

// OFF-NOT: @clip
// OFF: [[G:%.*]] = par.gradient %{{.*}} of @a
// OFF: par.sqrt
// OFF: par.sgd %{{.*}}, [[G]],
par.variable @a parameter : tensor<4xf32>
par.variable @b parameter : tensor<f32>
par.step @eval() -> tensor<f32> attributes {outputs = ["loss"]} {
  %a = par.read @a : tensor<4xf32>
  %b = par.read @b : tensor<f32>
  %s = par.reduce sum %a dims [0] : tensor<4xf32> to tensor<f32>
  %l = par.multiply %s, %b : tensor<f32>
  par.return %l : tensor<f32>
}
