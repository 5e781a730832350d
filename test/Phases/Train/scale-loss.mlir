// The scale seeds backward; updates read a gradient times the inverse of the scale, and so does the norm.
// RUN: par-opt %s --par-differentiate --par-add-optimizer --par-scale-loss=initial=1024 --par-clip-gradients=clip=1.5 | FileCheck %s
// RUN: not par-opt %s --par-differentiate --par-add-optimizer --par-scale-loss=initial=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: sed -e 's/@b/@loss_scale/' %s | not par-opt --par-differentiate --par-add-optimizer --par-scale-loss 2>&1 | FileCheck %s --check-prefix=TAKEN

// With the scale 1 the step gives the same.
// RUN: par-opt %s --par-differentiate --par-add-optimizer --par-check-phases='passes=par-scale-loss{initial=1}'

// ZERO: error: {{.*}} has the loss scale 0.000000e+00, expected a positive number
// TAKEN: error: {{.*}} needs a variable @loss_scale of its own
// TAKEN: note: the name is taken here

// CHECK-DAG: par.variable @loss_scale{{ +}}counter : tensor<f32> value dense<1.024000e+03>
// CHECK-DAG: par.variable @good_steps{{ +}}counter : tensor<f32> value dense<0.000000e+00>
// CHECK-LABEL: par.step @train
// CHECK: [[SCALE:%.*]] = par.read @loss_scale
// CHECK: par.cotangent %{{.*}}, [[SCALE]]
// CHECK: [[G:%.*]] = par.gradient %{{.*}} of @a
// CHECK: [[INVERSE:%.*]] = par.divide %{{.*}}, [[SCALE]]
// CHECK: [[SPREAD:%.*]] = par.broadcast_in_dim [[INVERSE]] dims []
// CHECK: [[U:%.*]] = par.multiply [[G]], [[SPREAD]] : tensor<4xf32>
// CHECK: par.multiply [[U]], [[U]] : tensor<4xf32>
// CHECK: [[C:%.*]] = par.multiply [[U]], %{{.*}} : tensor<4xf32>
// CHECK: par.sgd %{{.*}}, [[C]],
par.variable @a parameter : tensor<4xf32>
par.variable @b parameter : tensor<f32>
par.step @eval() -> tensor<f32> attributes {outputs = ["loss"]} {
  %a = par.read @a : tensor<4xf32>
  %b = par.read @b : tensor<f32>
  %s = par.reduce sum %a dims [0] : tensor<4xf32> to tensor<f32>
  %l = par.multiply %s, %b : tensor<f32>
  par.return %l : tensor<f32>
}
