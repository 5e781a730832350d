// The gradient of a table is kept as rows: those of equal indices are added up at the place of the first, the others' places
// name no row; two lookups are joined, and the update is of these rows.
// RUN: par-opt %s --par-differentiate --par-sparse-gradients=tables=t --par-add-optimizer=kind=adamw --par-clip-gradients=clip=1 --par-verify-train | FileCheck %s
// RUN: par-opt %s --par-differentiate --par-sparse-gradients=tables=t --par-add-optimizer=kind=sgd --par-check-phases='passes=par-slice-microbatches{microbatches=4},par-assign-stages,par-form-fragments'
// RUN: par-opt %s --par-differentiate --par-sparse-gradients=tables=t --par-add-optimizer=kind=momentum --par-check-phases='passes=par-slice-microbatches{microbatches=1},par-assign-stages,par-form-fragments'
// RUN: not par-opt %s --par-differentiate --par-sparse-gradients=tables=w -o /dev/null 2>&1 | FileCheck %s --check-prefix=TIED
// RUN: not par-opt %s --par-differentiate --par-sparse-gradients=tables=lost -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK-LABEL: par.step @train
// CHECK-NOT: size 9
// CHECK-DAG: par.collect %{{.*}} dims 2 : tensor<8x3x4xf32>
// CHECK-DAG: par.collect %{{.*}} dims 2 : tensor<8x3xi64>
// CHECK-DAG: par.collect %{{.*}} dims 1 : tensor<8x4xf32>
// CHECK: [[IDS:%.*]] = par.concat %{{.*}} dim 0 : (tensor<{{24|8}}xi64>, tensor<{{24|8}}xi64>) -> tensor<32xi64>
// CHECK: [[AT:%.*]] = par.iota dim 0 : tensor<32xi64>
// CHECK: [[LEAST:%.*]] = par.scatter_reduce{{ +}}min [[AT]], [[IDS]] dim 0 size 9
// CHECK: [[FIRST:%.*]] = par.take [[LEAST]], [[IDS]] dim 0
// CHECK: [[SUMS:%.*]] = par.index_add %{{.*}}, [[FIRST]] dim 0 size 32
// CHECK: [[OWN:%.*]] = par.compare{{ +}}eq [[FIRST]], [[AT]]
// CHECK: [[ROWS:%.*]] = par.select [[OWN]], [[IDS]], %{{.*}} : tensor<32xi1>, tensor<32xi64>
// CHECK: [[G:%.*]] = par.gradient [[SUMS]] rows [[ROWS]] of @t : tensor<32x4xf32>, tensor<32xi64>
// CHECK: par.multiply [[G]], [[G]]
// CHECK: par.adamw %{{.*}} rows [[ROWS]] : tensor<32xi64>

// TIED: sparse-gradients.mlir:[[@LINE+17]]:8: error: the gradient of "w" cannot be kept as looked-up rows: this is a part of it, and comes from no lookup of rows
// TIED: note: the plan says sparse: true of it in train.groups, which a table takes that is looked up along dim 0
// NONE: error: 'par.step' op keeps rows of @lost, which is no parameter
par.stage @s0 <> ranks [0]
par.variable @t parameter : tensor<9x4xf32>
par.variable @w parameter : tensor<8x4xf32>
par.step @eval(%ids: tensor<8x3xi64>, %one: tensor<8xi64>) -> tensor<f32> {
  %t = par.read @t : tensor<9x4xf32>
  %w = par.read @w : tensor<8x4xf32>
  %zero = par.constant dense<1> : tensor<8x3xi64>
  %safe = par.maximum %ids, %zero : tensor<8x3xi64>
  %least = par.constant dense<1> : tensor<8xi64>
  %item = par.maximum %one, %least : tensor<8xi64>
  %bag = par.gather %t, %safe dim 0 : tensor<9x4xf32>, tensor<8x3xi64> to tensor<8x3x4xf32>
  %rows = par.gather %t, %item dim 0 : tensor<9x4xf32>, tensor<8xi64> to tensor<8x4xf32>
  %sum = par.reduce sum %bag dims [1] : tensor<8x3x4xf32> to tensor<8x4xf32>
  %x = par.multiply %sum, %rows : tensor<8x4xf32>
  %y = par.dot %x, %w contracting [1] x [1] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %sq = par.multiply %y, %y : tensor<8x8xf32>
  %l = par.reduce sum %sq dims [0, 1] : tensor<8x8xf32> to tensor<f32>
  par.return %l : tensor<f32>
}
