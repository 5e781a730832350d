// Results of @eval that are means over samples or labels say of how many, so that batches can be averaged exactly.
// RUN: par-opt %s --par-count-results --split-input-file | FileCheck %s

// The mean over labels that count is returned with their number; a mean over samples has none.
// CHECK: par.step @eval
// CHECK-SAME: outputs = ["loss", "accuracy", "count(loss)"]
// CHECK: %[[COUNT:.*]] = par.reduce sum %{{.*}} dims [0] : tensor<4xi64> to tensor<i64>
// CHECK: %[[LOSS:.*]] = par.divide
// CHECK: %[[FLOAT:.*]] = par.convert %[[COUNT]] : tensor<i64> to tensor<f32>
// CHECK: par.return %[[LOSS]], %{{.*}}, %[[FLOAT]]
module {
par.stage @s0 <> ranks [0]
par.step @eval(%x: tensor<4xf32>, %m: tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
    attributes {inputs = ["x", "m"], outputs = ["loss", "accuracy"]} {
  %sum = par.reduce sum %x dims [0] : tensor<4xf32> to tensor<f32>
  %count = par.reduce sum %m dims [0] : tensor<4xi64> to tensor<i64>
  %one = par.constant dense<1> : tensor<i64>
  %some = par.maximum %count, %one : tensor<i64>
  %divisor = par.convert %some : tensor<i64> to tensor<f32>
  %loss = par.divide %sum, %divisor : tensor<f32>
  %quarter = par.constant dense<0.25> : tensor<f32>
  %mean = par.multiply %sum, %quarter : tensor<f32>
  par.return %loss, %mean : tensor<f32>, tensor<f32>
}
}

// -----

// A square root of a mean is no mean, and neither are deviations from the batch's mean, nor a sum of two means over
// different labels.
// CHECK: outputs = ["loss", "spread", "both", "batch(loss)", "batch(spread)", "batch(both)"]
// CHECK: %[[ONE:.*]] = par.constant dense<1.000000e+00> : tensor<f32>
// CHECK: par.return %{{.*}}, %{{.*}}, %{{.*}}, %[[ONE]], %{{.*}}, %{{.*}}
module {
par.stage @s0 <> ranks [0]
par.step @eval(%x: tensor<4xf32>, %m: tensor<4xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
    attributes {inputs = ["x", "m"], outputs = ["loss", "spread", "both"]} {
  %sum = par.reduce sum %x dims [0] : tensor<4xf32> to tensor<f32>
  %loss = par.sqrt %sum : tensor<f32>
  %all = par.broadcast_in_dim %sum dims [] : tensor<f32> to tensor<4xf32>
  %away = par.subtract %x, %all : tensor<4xf32>
  %square = par.multiply %away, %away : tensor<4xf32>
  %spread = par.reduce sum %square dims [0] : tensor<4xf32> to tensor<f32>
  %count = par.reduce sum %m dims [0] : tensor<4xf32> to tensor<f32>
  %mean = par.divide %sum, %count : tensor<f32>
  %both = par.add %mean, %sum : tensor<f32>
  par.return %loss, %spread, %both : tensor<f32>, tensor<f32>, tensor<f32>
}
}

// -----

// In a batch of one every sum is over its only sample.
// CHECK: outputs = ["loss", "count(loss)"]
module {
par.stage @s0 <> ranks [0]
par.step @eval(%x: tensor<1x6xf32>, %m: tensor<1x6xf32>) -> tensor<f32>
    attributes {inputs = ["x", "m"], outputs = ["loss"]} {
  %rows = par.reshape %x : tensor<1x6xf32> to tensor<6xf32>
  %masks = par.reshape %m : tensor<1x6xf32> to tensor<6xf32>
  %sum = par.reduce sum %rows dims [0] : tensor<6xf32> to tensor<f32>
  %count = par.reduce sum %masks dims [0] : tensor<6xf32> to tensor<f32>
  %mean = par.divide %sum, %count : tensor<f32>
  par.return %mean : tensor<f32>
}
}
