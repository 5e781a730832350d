// A matrix that the graph reads in another shape is updated as users and checkpoints see it.
// RUN: par-opt %s --par-add-optimizer="kind=muon" | FileCheck %s
// RUN: par-opt %s --par-add-optimizer="kind=lion" | FileCheck %s --check-prefix=LION

// CHECK: par.variable @w.muon{{ +}}state of @w : tensor<2x2x3xf32> stored tensor<2x6xf32>
// CHECK: [[W:%.*]] = par.reshape {{.*}} : tensor<2x2x3xf32> to tensor<2x6xf32>
// CHECK: [[G:%.*]] = par.reshape {{.*}} : tensor<2x2x3xf32> to tensor<2x6xf32>
// CHECK: [[B:%.*]] = par.reshape {{.*}} : tensor<2x2x3xf32> to tensor<2x6xf32>
// CHECK: [[N:%.*]], [[S:%.*]] = par.muon [[W]], [[G]], [[B]],
// CHECK: [[NEW:%.*]] = par.reshape [[N]] : tensor<2x6xf32> to tensor<2x2x3xf32>
// CHECK: par.write [[NEW]] to @w : tensor<2x2x3xf32>
// CHECK: [[STATE:%.*]] = par.reshape [[S]] : tensor<2x6xf32> to tensor<2x2x3xf32>
// CHECK: par.write [[STATE]] to @w.muon : tensor<2x2x3xf32>

// LION-NOT: par.reshape
// LION: par.lion {{.*}} tensor<2x2x3xf32>

par.variable @w parameter : tensor<2x2x3xf32> stored tensor<2x6xf32>
par.step @train() -> tensor<f32> attributes {outputs = ["loss"]} {
  %w = par.read @w : tensor<2x2x3xf32>
  %l = par.reduce sum %w dims [0, 1, 2] : tensor<2x2x3xf32> to tensor<f32>
  %one = par.constant dense<1.0> : tensor<f32>
  %b = par.broadcast_in_dim %one dims [] : tensor<f32> to tensor<2x2x3xf32>
  %g = par.gradient %b of @w : tensor<2x2x3xf32>
  par.return %l : tensor<f32>
}
