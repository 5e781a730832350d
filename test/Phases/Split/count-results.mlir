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

// A square root of a mean is no mean, and neither are deviations from the batch's mean.
// CHECK: outputs = ["loss", "spread", "batch(loss)", "batch(spread)"]
// CHECK: %[[ONE:.*]] = par.constant dense<1.000000e+00> : tensor<f32>
// CHECK: par.return %{{.*}}, %{{.*}}, %[[ONE]], %{{.*}}
module {
par.stage @s0 <> ranks [0]
par.step @eval(%x: tensor<4xf32>, %m: tensor<4xf32>) -> (tensor<f32>, tensor<f32>)
    attributes {inputs = ["x", "m"], outputs = ["loss", "spread"]} {
  %sum = par.reduce sum %x dims [0] : tensor<4xf32> to tensor<f32>
  %loss = par.sqrt %sum : tensor<f32>
  %all = par.broadcast_in_dim %sum dims [] : tensor<f32> to tensor<4xf32>
  %away = par.subtract %x, %all : tensor<4xf32>
  %square = par.multiply %away, %away : tensor<4xf32>
  %spread = par.reduce sum %square dims [0] : tensor<4xf32> to tensor<f32>
  par.return %loss, %spread : tensor<f32>, tensor<f32>
}
}

// -----

// A mean over labels less a mean over samples: two results add up to it, each with its own kind. Sums, here of
// thirds of the values, add up; a constant is the mean of itself.
// CHECK: outputs = ["both", "half", "shifted", "terms(both)", "term(both,0)", "count(term(both,0))", "term(both,1)",
// CHECK-SAME: "sum(half)", "terms(shifted)", "term(shifted,0)", "sum(term(shifted,0))", "term(shifted,1)"]
// CHECK: %[[SUM:.*]] = par.reduce sum %{{.*}} dims [0] : tensor<4xf32> to tensor<f32>
// CHECK: %[[COUNT:.*]] = par.reduce sum
// CHECK: %[[FOUR:.*]] = par.constant dense<4.000000e+00>
// CHECK: %[[THREE:.*]] = par.constant dense<3.000000e+00>
// CHECK: par.add %[[SUM]], %[[THREE]]
// CHECK: %[[LABELS:.*]] = par.divide %[[SUM]], %[[COUNT]]
// CHECK: %[[MEAN:.*]] = par.divide %[[SUM]], %[[FOUR]]
// CHECK: %[[AWAY:.*]] = par.negate %[[MEAN]]
// CHECK: %[[TWO:.*]] = par.constant dense<2.000000e+00>
// CHECK: par.return %{{.*}}, %{{.*}}, %{{.*}}, %[[TWO]], %[[LABELS]], %[[COUNT]], %[[AWAY]],
// CHECK-SAME: %{{.*}}, %{{.*}}, %[[SUM]], %{{.*}}, %[[THREE]] :
module {
par.stage @s0 <> ranks [0]
par.step @eval(%x: tensor<4xf32>, %m: tensor<4xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
    attributes {inputs = ["x", "m"], outputs = ["both", "half", "shifted"]} {
  %sum = par.reduce sum %x dims [0] : tensor<4xf32> to tensor<f32>
  %count = par.reduce sum %m dims [0] : tensor<4xf32> to tensor<f32>
  %labels = par.divide %sum, %count : tensor<f32>
  %four = par.constant dense<4.0> : tensor<f32>
  %mean = par.divide %sum, %four : tensor<f32>
  %both = par.subtract %labels, %mean : tensor<f32>
  %three = par.constant dense<3.0> : tensor<f32>
  %half = par.divide %sum, %three : tensor<f32>
  %shifted = par.add %sum, %three : tensor<f32>
  par.return %both, %half, %shifted : tensor<f32>, tensor<f32>, tensor<f32>
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
