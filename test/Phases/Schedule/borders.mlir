// A layout change beside the loops joins its user or producer: the shard of a parameter the update that reads it, the
// all-gather of its new value the update that makes it, the reduction of its gradient the last backward.
// RUN: par-opt %S/../Propagate/Inputs/tied.mlir --par-differentiate --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp state-axes=dp' --par-partition-fragments --par-build-programs --par-verify-schedule | FileCheck %s
// RUN: par-opt %S/../Propagate/Inputs/tied.mlir --par-differentiate --par-add-optimizer=kind=momentum --par-check-phases='passes=par-slice-microbatches{microbatches=2},par-assign-stages,par-form-fragments,par-propagate-shardings{batch-axes=dp state-axes=dp},par-partition-fragments,par-build-programs,par-inline-fragments,par-accumulate-in-place,par-form-kernels'

// CHECK: par.block @train.backward.last
// CHECK: par.exec @train.s0.backward
// CHECK: %[[SUM:.*]] = par.add
// CHECK: par.exec @train.s0.reduce{{[0-9]}}(%[[SUM]]) : (tensor<10x6xf32>) -> tensor<5x6xf32>
// CHECK: par.block @train.update
// CHECK: %[[OLD:.*]] = par.load @table : tensor<10x6xf32>
// CHECK-NEXT: par.exec @train.s0.reduce{{[0-9]}}(%[[OLD]]) : (tensor<10x6xf32>) -> tensor<5x6xf32>
// CHECK: %[[NEW:.*]]:3 = par.exec @train.s0.update
// CHECK-NEXT: %[[WHOLE:.*]] = par.exec @train.s0.reduce{{[0-9]}}(%[[NEW]]#1) : (tensor<5x6xf32>) -> tensor<10x6xf32>
// CHECK: par.store %[[WHOLE]] to @table
