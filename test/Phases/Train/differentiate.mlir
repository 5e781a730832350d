// A training step is the forward part, a cotangent, the backward part, and one gradient a parameter; a value that is
// used twice gets the sum of two cotangents; backward ops are on the stage of their forward op.
// RUN: par-opt %s --par-differentiate --split-input-file | FileCheck %s

par.variable @w parameter : tensor<8x8xf32>
par.variable @fixed frozen : tensor<8x8xf32>

// CHECK-LABEL: par.step @eval
// CHECK: par.return %{{.*}}, %{{.*}} : tensor<f32>, tensor<4x8xf32>
// CHECK-LABEL: par.step @train(%arg0: tensor<4x8xf32>) -> tensor<f32>
// CHECK-SAME: outputs = ["loss"]
// CHECK: [[W:%.*]] = par.read @w
// CHECK: [[U:%.*]] = par.dot %arg0, [[W]]
// CHECK-NEXT: [[F:%.*]] = par.read @fixed
// CHECK-NEXT: [[V:%.*]] = par.dot [[U]], [[W]]
// CHECK-NEXT: [[Y:%.*]] = par.dot [[V]], [[F]]
// CHECK-NOT: par.tanh
// CHECK: [[CT:%.*]] = par.cotangent %{{.*}}, %{{.*}} {stage = 1 : i64}
// CHECK: [[B:%.*]] = par.broadcast_in_dim [[CT]] dims [] {stage = 1 : i64} : tensor<f32> to tensor<4x8xf32>
// CHECK: [[DV:%.*]] = par.dot [[B]], [[F]] contracting [1] x [1] : (
// CHECK-DAG: [[DU:%.*]] = par.dot [[DV]], [[W]] contracting [1] x [1] {stage = 1 : i64}
// CHECK-DAG: [[G1:%.*]] = par.dot [[U]], [[DV]] contracting [0] x [0] {stage = 1 : i64}
// CHECK: [[G0:%.*]] = par.dot %arg0, [[DU]] contracting [0] x [0] {stage = 0 : i64}
// CHECK: [[G:%.*]] = par.add [[G1]], [[G0]] : tensor<8x8xf32>
// CHECK: par.gradient [[G]] of @w : tensor<8x8xf32>
// CHECK-NOT: par.gradient
// CHECK: par.return %{{.*}} : tensor<f32>
par.step @eval(%x: tensor<4x8xf32>) -> (tensor<f32>, tensor<4x8xf32>)
    attributes {inputs = ["x"], outputs = ["loss", "logits"]} {
  %w = par.read @w : tensor<8x8xf32>
  %u = par.dot %x, %w contracting [1] x [0] {stage = 0 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %f = par.read @fixed : tensor<8x8xf32>
  %v = par.dot %u, %w contracting [1] x [0] {stage = 1 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %y = par.dot %v, %f contracting [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = par.tanh %y : tensor<4x8xf32>
  %l = par.reduce sum %y dims [0, 1] {stage = 1 : i64} : tensor<4x8xf32> to tensor<f32>
  par.return %l, %z : tensor<f32>, tensor<4x8xf32>
}

// -----

// Uses on one stage add their parts there, whatever lies between: one sum a stage.
par.variable @w parameter : tensor<4x4xf32>
// CHECK-LABEL: par.step @train
// CHECK-DAG: [[G2:%.*]] = par.dot %{{.*}} contracting [0] x [0] {stage = 1 : i64}
// CHECK-DAG: [[G1:%.*]] = par.dot %{{.*}} contracting [0] x [0] {stage = 0 : i64}
// CHECK-DAG: [[G0:%.*]] = par.dot %arg0, %{{.*}} contracting [0] x [0] {stage = 0 : i64}
// CHECK: [[S0:%.*]] = par.add [[G1]], [[G0]] {stage = 0 : i64} : tensor<4x4xf32>
// CHECK-NEXT: [[G:%.*]] = par.add [[G2]], [[S0]] : tensor<4x4xf32>
// CHECK-NEXT: par.gradient [[G]] of @w
par.step @eval(%x: tensor<2x4xf32>) -> tensor<f32> attributes {inputs = ["x"], outputs = ["loss"]} {
  %w = par.read @w : tensor<4x4xf32>
  %u = par.dot %x, %w contracting [1] x [0] {stage = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %v = par.dot %u, %w contracting [1] x [0] {stage = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %z = par.dot %v, %w contracting [1] x [0] {stage = 1 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %l = par.reduce sum %z dims [0, 1] {stage = 1 : i64} : tensor<2x4xf32> to tensor<f32>
  par.return %l : tensor<f32>
}

// -----

// Nothing flows back through integers, comparisons and rounding; without @eval there is nothing to do.
// CHECK-LABEL: par.step @predict
// CHECK-NOT: par.step
par.step @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = par.tanh %x : tensor<4xf32>
  par.return %0 : tensor<4xf32>
}
