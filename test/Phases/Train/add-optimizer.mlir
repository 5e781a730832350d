// Each kind adds its states, reads the learning rate and writes parameters, states and step count; settings of one
// parameter hold only for it; states are sharded as their parameter is.
// RUN: par-opt %s --par-differentiate --par-add-optimizer="kind=adamw lr=0.5 decay=0.1 lr-scales=b=0.25 decays=b=0" | FileCheck %s
// RUN: par-opt %s --par-differentiate --par-add-optimizer="kind=momentum settings=momentum=0.8,nesterov=1" | FileCheck %s --check-prefix=MOMENTUM
// RUN: par-opt %s --par-differentiate --par-add-optimizer | FileCheck %s --check-prefix=SGD
// RUN: par-opt %s --par-differentiate --par-add-optimizer="kind=adamw settings=beta1=0.8 kinds=b=sgd own-settings=w:beta2=0.5" | FileCheck %s --check-prefix=OWN
// RUN: par-opt %s --par-differentiate --par-add-optimizer="kinds=b=momentum own-settings=b:nesterov=1" | FileCheck %s --check-prefix=COUNTS
// RUN: par-opt %s --par-differentiate --par-add-optimizer="kind=adamw states=bf16" | FileCheck %s --check-prefix=NARROW

// CHECK: par.variable @w{{ +}}parameter
// CHECK-NEXT: par.variable @w.m{{ +}}state of @w : tensor<2x4xf32> stored tensor<8xf32> sharding <[{}, {"tp"}]> init "zeros"
// CHECK-NEXT: par.variable @w.v{{ +}}state of @w : tensor<2x4xf32> stored tensor<8xf32> sharding <[{}, {"tp"}]> init "zeros"
// CHECK-NEXT: par.variable @b{{ +}}parameter
// CHECK-NEXT: par.variable @b.m{{ +}}state of @b
// CHECK-NEXT: par.variable @b.v{{ +}}state of @b
// CHECK-NEXT: par.variable @lr{{ +}}hyperparameter : tensor<f32> value dense<5.000000e-01>
// CHECK-NEXT: par.variable @step{{ +}}counter : tensor<f32> init "zeros"
// CHECK-LABEL: par.step @train
// CHECK-DAG: [[GW:%.*]] = par.gradient %{{.*}} of @w
// CHECK-DAG: [[GB:%.*]] = par.gradient %{{.*}} of @b
// CHECK: [[LR:%.*]] = par.read @lr
// CHECK: [[OLD:%.*]] = par.read @step
// CHECK: [[STEP:%.*]] = par.add [[OLD]],
// CHECK: par.write [[STEP]] to @step
// CHECK: %{{.*}} = par.adamw %{{.*}}, [[GW]], %{{.*}}, %{{.*}}, [[STEP]], [[LR]] betas 9.000000e-01, {{.*}} decay 1.000000e-01
// CHECK: par.write %{{.*}} to @w :
// CHECK: par.write %{{.*}} to @w.m :
// CHECK: par.write %{{.*}} to @w.v :
// CHECK: [[SCALED:%.*]] = par.multiply [[LR]],
// CHECK: par.adamw %{{.*}}, [[GB]], %{{.*}}, %{{.*}}, [[STEP]], [[SCALED]] betas {{.*}} decay 0.000000e+00

// MOMENTUM: par.variable @w.momentum{{ +}}state of @w
// MOMENTUM-NOT: @w.m{{ }}
// MOMENTUM: par.momentum {{.*}} momentum 8.000000e-01 decay 0.000000e+00 {nesterov = true}
// MOMENTUM: par.write %{{.*}} to @w :
// MOMENTUM: par.write %{{.*}} to @w.momentum :

// A parameter with an optimizer of its own has only that one's states; a setting of its own comes beside the common
// ones.
// OWN: par.variable @w.v{{ +}}state of @w
// OWN-NOT: @b.
// OWN: par.variable @step
// OWN: par.adamw {{.*}} betas 8.000000e-01, 5.000000e-01 epsilon
// OWN: par.sgd

// Narrow states are widened where they are read, and rounded where they are written.
// NARROW: par.variable @w.m{{ +}}state of @w : tensor<2x4xbf16> stored tensor<8xbf16>
// NARROW: [[M:%.*]] = par.read @w.m : tensor<2x4xbf16>
// NARROW: [[WIDE:%.*]] = par.convert [[M]] : tensor<2x4xbf16> to tensor<2x4xf32>
// NARROW: {{%.*}}, [[NEW:%.*]], {{%.*}} = par.adamw {{%.*}}, {{%.*}}, [[WIDE]],
// NARROW: [[ROUNDED:%.*]] = par.convert [[NEW]] : tensor<2x4xf32> to tensor<2x4xbf16>
// NARROW: par.write [[ROUNDED]] to @w.m : tensor<2x4xbf16>

// COUNTS: par.variable @b.momentum{{ +}}state of @b
// COUNTS: par.variable @step
// COUNTS: par.sgd
// COUNTS: par.momentum {{.*}} {nesterov = true}

// SGD-NOT: @step
// SGD: par.variable @lr{{ +}}hyperparameter : tensor<f32> value dense<1.000000e-03>
// SGD-COUNT-2: par.sgd
par.variable @w parameter : tensor<2x4xf32> stored tensor<8xf32> sharding <[{}, {"tp"}]>
par.variable @b parameter : tensor<4xf32>
par.step @eval(%x: tensor<3x2xf32>) -> tensor<f32> attributes {inputs = ["x"], outputs = ["loss"]} {
  %w = par.read @w : tensor<2x4xf32>
  %b = par.read @b : tensor<4xf32>
  %0 = par.dot %x, %w contracting [1] x [0] : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %1 = par.broadcast_in_dim %b dims [1] : tensor<4xf32> to tensor<3x4xf32>
  %2 = par.add %0, %1 : tensor<3x4xf32>
  %l = par.reduce sum %2 dims [0, 1] : tensor<3x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
