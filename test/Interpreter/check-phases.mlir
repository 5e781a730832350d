// A step means the same after every pass from Split to Partition, on eight ranks in two stages.
// RUN: par-opt %S/../Phases/Propagate/Inputs/two-stages.mlir --par-check-phases='passes=par-slice-microbatches{microbatches=4},par-assign-stages,par-form-fragments,par-propagate-shardings{batch-axes=dp},par-partition-fragments' | FileCheck %s
// RUN: not par-opt %S/../Phases/Propagate/Inputs/two-stages.mlir --par-check-phases='passes=par-no-such-pass' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not par-opt %S/../Phases/Propagate/Inputs/two-stages.mlir --par-check-phases='passes=par-slice-microbatches{microbatches=3}' 2>&1 | FileCheck %s --check-prefix=FAILED
// RUN: not par-opt %s --par-check-phases=passes=cse 2>&1 | FileCheck %s --check-prefix=NOTHING
// CHECK: par.all_reduce
// UNKNOWN: "par-no-such-pass" is no pass pipeline
// FAILED: error: the batch of 16 does not divide into 3 microbatches
// FAILED: error: the check of "par-slice-microbatches{microbatches=3}" failed
// NOTHING: error: nothing to compare: the module has neither a step nor an entry
