// A parameter is stored, accumulated and updated in layouts of its own: reshards stand where it goes from one to the other.
// RUN: par-opt %S/Inputs/tied.mlir --par-differentiate --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp state-axes=dp' --par-verify-propagate | FileCheck %s --check-prefix=STATES
// RUN: par-opt %S/Inputs/tied.mlir --par-differentiate --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp state-axes=dp gradient-axes=dp' --par-verify-propagate | FileCheck %s --check-prefix=GRADIENTS
// RUN: par-opt %S/Inputs/tied.mlir --par-differentiate --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp state-axes=dp gradient-axes=dp parameter-axes=dp' --par-verify-propagate | FileCheck %s --check-prefix=PARAMETERS
// RUN: par-opt %S/Inputs/tied.mlir --par-differentiate --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp state-axes=dp min-size=61' --par-verify-propagate | FileCheck %s --check-prefix=SMALL
// RUN: par-opt %S/Inputs/tied.mlir --par-differentiate --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages --par-form-fragments --par-propagate-shardings='batch-axes=dp state-axes=dp gradient-axes=dp parameter-axes=dp gather-once' --par-verify-propagate | FileCheck %s --check-prefix=ONCE
// RUN: par-opt %S/Inputs/tied.mlir --par-mix-precision=compute=bf16 --par-differentiate --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages --par-lift-invariants=min-bytes=64 --par-form-fragments --par-propagate-shardings='batch-axes=dp state-axes=dp gradient-axes=dp parameter-axes=dp gather-once' --par-verify-propagate | FileCheck %s --check-prefix=ROUNDED
// RUN: par-opt %S/Inputs/tied.mlir --par-mix-precision=compute=bf16 --par-differentiate --par-widen-sums \
// RUN:   --par-round-parameters \
// RUN:   --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages \
// RUN:   --par-lift-invariants='max-bytes=1 masters=0' --par-form-fragments \
// RUN:   --par-propagate-shardings='batch-axes=dp state-axes=dp masters' --par-verify-propagate \
// RUN:   | FileCheck %s --check-prefix=MASTERS
// RUN: par-opt %S/Inputs/tied.mlir --par-mix-precision=compute=bf16 --par-differentiate --par-widen-sums \
// RUN:   --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages \
// RUN:   --par-lift-invariants='max-bytes=1 masters=0' --par-form-fragments \
// RUN:   --par-propagate-shardings='batch-axes=dp state-axes=dp masters' --par-verify-propagate \
// RUN:   | FileCheck %s --check-prefix=STATES
// RUN: par-opt %S/Inputs/tied.mlir --par-mix-precision=compute=bf16 --par-differentiate --par-widen-sums \
// RUN:   --par-round-parameters \
// RUN:   --par-add-optimizer=kind=momentum --par-slice-microbatches=microbatches=2 --par-assign-stages \
// RUN:   --par-lift-invariants='max-bytes=1 masters=0' --par-form-fragments \
// RUN:   --par-propagate-shardings='batch-axes=dp state-axes=dp masters min-size=61' --par-verify-propagate \
// RUN:   | FileCheck %s --check-prefix=SMALL
// RUN: not par-opt %S/Inputs/tied.mlir --par-propagate-shardings=state-axes=ep 2>&1 | FileCheck %s --check-prefix=AXIS
// AXIS: error: states are over axis "ep", which no stage's mesh has

// The accumulator stays whole and a sum; it is scattered once, and the new value is gathered.
// STATES-DAG: par.variable @table parameter {{.*}} at [!par.dist<tensor<10x6xf32>, @s0, [{}, {}]>]
// STATES-DAG: par.variable @table.{{.*}} state of @table {{.*}} at [!par.dist<tensor<10x6xf32>, @s0, [{"dp"}, {}]>]
// STATES-LABEL: par.step @train
// STATES: par.read @table :
// STATES: par.loop
// STATES-DAG: par.reshard %{{.*}} : <tensor<10x6xf32>, @s0, [{}, {}], unreduced={"dp", "tp"}> to <tensor<10x6xf32>, @s0, [{"dp"}, {}]>
// STATES-DAG: par.reshard %{{.*}} : <tensor<10x6xf32>, @s0, [{}, {}]> to <tensor<10x6xf32>, @s0, [{"dp"}, {}]>
// STATES: %[[NEW:.*]]:3 = par.run @train.s0.update
// STATES: %[[WHOLE:.*]] = par.reshard %[[NEW]]#1 : <tensor<10x6xf32>, @s0, [{"dp"}, {}]> to <tensor<10x6xf32>, @s0, [{}, {}]>
// STATES: par.write %[[WHOLE]] to @table

// Both summands stay whole sums, and their sum is scattered in every microbatch. If two layouts turn out to be equal,
// no border is left: tp is summed after the loop.
// GRADIENTS-LABEL: par.fragment @train.s0.backward
// GRADIENTS: par.dot {{.*}}[#par.sharding<[{}, {}], unreduced={"dp", "tp"}>]
// GRADIENTS: par.index_add {{.*}}[#par.sharding<[{}, {}], unreduced={"dp"}>]
// GRADIENTS: par.add {{.*}}[#par.sharding<[{"dp"}, {}], unreduced={"tp"}>]
// GRADIENTS-LABEL: par.step @train
// GRADIENTS: par.reshard %{{.*}} : <tensor<10x6xf32>, @s0, [{"dp"}, {}], unreduced={"tp"}> to <tensor<10x6xf32>, @s0, [{"dp"}, {}]>

// PARAMETERS: par.variable @table parameter {{.*}} at [!par.dist<tensor<10x6xf32>, @s0, [{"dp"}, {}]>]
// PARAMETERS-LABEL: par.step @train
// PARAMETERS: par.reshard {{.*}}unreduced={"tp"}> to <tensor<10x6xf32>, @s0, [{"dp"}, {}]>
// PARAMETERS-NOT: par.reshard %{{.*}} : <tensor<10x6xf32>

// SMALL-NOT: state of @table {{.*}} at {{.*}}"dp"
// SMALL: par.reshard {{.*}}unreduced={"dp", "tp"}> to <tensor<10x6xf32>, @s0, [{}, {}]>
// SMALL-NOT: par.reshard %{{.*}} : <tensor<10x6xf32>

// ONCE-LABEL: par.step @train
// ONCE: %[[SHARD:.*]] = par.read @table : !par.dist<tensor<10x6xf32>, @s0, [{"dp"}, {}]>
// ONCE: %[[USED:.*]] = par.reshard %[[SHARD]] : <tensor<10x6xf32>, @s0, [{"dp"}, {}]> to <tensor<10x6xf32>, @s0, [{}, {}]>
// ONCE: par.loop
// ONCE: par.run @train.s0.forward({{.*}}%[[USED]]
// ONCE: par.run @train.s0.update({{.*}}%[[SHARD]]

// A value rounded before the loop is gathered after rounding; one that the loop uses unrounded, too.
// ROUNDED-LABEL: par.step @train
// ROUNDED: %[[SHARD:.*]] = par.read @table : !par.dist<tensor<10x6xf32>, @s0, [{"dp"}, {}]>
// ROUNDED-DAG: %[[NARROW:.*]] = par.run @train.s0.before({{.*}}%[[SHARD]]{{.*}}bf16
// ROUNDED-DAG: par.reshard %[[NARROW]]{{.*}} : <tensor<10x6xbf16>, @s0, [{"dp"}, {}]> to <tensor<10x6xbf16>, @s0, [{}, {}]>
// ROUNDED-DAG: par.reshard %[[SHARD]] : <tensor<10x6xf32>, @s0, [{"dp"}, {}]> to <tensor<10x6xf32>, @s0, [{}, {}]>
// ROUNDED: par.loop

// A master, which no fragment of the loop reads in f32, lies as its states do: a shard is rounded and gathered so, and
// updated where it lies. A table whose rows are looked up in f32 is no master (STATES).
// MASTERS-DAG: par.variable @table parameter {{.*}} at [!par.dist<tensor<10x6xf32>, @s0, [{"dp"}, {}]>]
// MASTERS-DAG: par.variable @table.{{.*}} state of @table {{.*}} at [!par.dist<tensor<10x6xf32>, @s0, [{"dp"}, {}]>]
// MASTERS-LABEL: par.step @train
// MASTERS: %[[MASTER:.*]] = par.read @table : !par.dist<tensor<10x6xf32>, @s0, [{"dp"}, {}]>
// MASTERS: %[[ROUND:.*]] = par.run @train.s0.before(%[[MASTER]]) {{.*}}bf16
// MASTERS: %[[GATHERED:.*]] = par.reshard %[[ROUND]] : <{{.*}}bf16>, @s0, [{"dp"}, {}]> to <{{.*}}bf16>, @s0, [{}, {}]>
// MASTERS: par.loop
// MASTERS: par.run @train.s0.forward({{.*}}%[[GATHERED]]
// MASTERS: par.reshard {{.*}} [{}, {}], unreduced={"dp"{{.*}}}> to <tensor<10x6xf32>, @s0, [{"dp"}, {}]>
// MASTERS: %[[NEXT:.*]]:3 = par.run @train.s0.update({{.*}}%[[MASTER]]
// MASTERS: par.write %[[NEXT]]#1 to @table
