// The plan's rules for one parameter's gradient and states apply whatever the parameter's own sharding.
// RUN: par-opt %S/Inputs/tied.mlir --par-differentiate --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp state-rules=table=0:dp' --par-verify-propagate | FileCheck %s --check-prefix=STATE
// RUN: par-opt %S/Inputs/tied.mlir --par-differentiate --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp gradient-rules=table=0:dp+tp' --par-verify-propagate | FileCheck %s --check-prefix=GRADIENT
// RUN: par-opt %S/Inputs/tied.mlir --par-differentiate --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp gradient-axes=dp state-axes=dp parameter-axes=dp gradient-rules=table=closed state-rules=table=1:tp' --par-verify-propagate | FileCheck %s --check-prefix=BESIDE

// Like state-axes, only for this parameter.
// STATE-DAG: par.variable @table parameter {{.*}} at [!par.dist<tensor<10x6xf32>, @s0, [{}, {}]>]
// STATE-DAG: par.variable @table.{{.*}} state of @table {{.*}} at [!par.dist<tensor<10x6xf32>, @s0, [{"dp"}, {}]>]
// STATE-LABEL: par.step @train
// STATE: par.loop
// STATE-DAG: par.reshard %{{.*}} : <tensor<10x6xf32>, @s0, [{}, {}], unreduced={"dp", "tp"}> to <tensor<10x6xf32>, @s0, [{"dp"}, {}]>
// STATE: %[[NEW:.*]]:3 = par.run @train.s0.update
// STATE: par.reshard %[[NEW]]#1 : <tensor<10x6xf32>, @s0, [{"dp"}, {}]> to <tensor<10x6xf32>, @s0, [{}, {}]>

// The gradient is scattered in every microbatch and gathered for the update; nothing else lies over tp for it.
// GRADIENT-DAG: par.variable @table.{{.*}} state of @table {{.*}} at [!par.dist<tensor<10x6xf32>, @s0, [{}, {}]>]
// GRADIENT-LABEL: par.step @train
// GRADIENT: par.reshard %{{.*}} : <tensor<10x6xf32>, @s0, [{"dp", "tp"}, {}]> to <tensor<10x6xf32>, @s0, [{}, {}]>

// Beside zero: a closed rule keeps the gradient whole, a rule on one dim leaves the axes of zero to another.
// BESIDE-DAG: par.variable @table parameter {{.*}} at [!par.dist<tensor<10x6xf32>, @s0, [{"dp"}, {}]>]
// BESIDE-DAG: par.variable @table.{{.*}} state of @table {{.*}} at [!par.dist<tensor<10x6xf32>, @s0, [{"dp"}, {"tp"}]>]
// BESIDE-LABEL: par.step @train
// BESIDE: par.reshard %{{.*}} : <tensor<10x6xf32>, @s0, [{}, {}], unreduced={"dp", "tp"}> to <tensor<10x6xf32>, @s0, [{"dp"}, {"tp"}]>
