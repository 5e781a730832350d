// A softmax whose NaN a select replaces by 0 is one op, if nothing else reads its NaN; it means the same, NaN rows among others.
// RUN: par-opt %s --par-safe-softmax --split-input-file | FileCheck %s
// RUN: par-opt %s --split-input-file --par-check-phases=passes=par-safe-softmax -o /dev/null

// The second row sees no key, and the gradient of its hidden probabilities is 0.
// CHECK-LABEL: par.step @eval
// CHECK-NEXT: %[[P:.*]] = par.softmax %{{.*}} dim 1 safe {stage = 1 : i64} : tensor<2x3xf32>
// CHECK-NOT: par.is_nan
// CHECK-NOT: par.select
// CHECK: par.return %[[P]]
par.step @eval(%s: tensor<2x3xf32>) -> tensor<2x3xf32> attributes {inputs = ["s"], outputs = ["p"]} {
  %p = par.softmax %s dim 1 {stage = 1 : i64} : tensor<2x3xf32>
  %nan = par.is_nan %p {stage = 1 : i64} : tensor<2x3xf32>
  %zero = par.constant dense<0.0> : tensor<2x3xf32>
  %safe = par.select %nan, %zero, %p {stage = 1 : i64} : tensor<2x3xi1>, tensor<2x3xf32>
  par.return %safe : tensor<2x3xf32>
}
