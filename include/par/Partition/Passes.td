#ifndef PAR_PARTITION_PASSES_TD
#define PAR_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def PartitionFragmentsPass : Pass<"par-partition-fragments", "::mlir::ModuleOp"> {
  let summary = "turns fragments of global shapes into local ones with explicit communication";
  let description = [{
    Expects: shardings on every value (after Propagate). Leaves: `local` fragments on shard shapes; collectives where a
    value is needed otherwise than it is made, each change as the cheapest sequence of reduce-scatter, all-reduce,
    all-to-all, all-gather and slicing by the hardware file (see par/Solver/ReshardPath.h), each over all axes that move
    so; padding masked with the neutral element by what reduces it; step-level reshards as runs of fragments of their
    own.
    Fails: where an op cannot be built on shards, or there is no such hardware file.

    ```
    %p = par.dot %g, %w2 contracting [1] x [0] : (tensor<4x128xf32>, tensor<128x10xf32>) -> tensor<4x10xf32>
    %z = par.all_reduce sum %p over ["tp"] : (tensor<4x10xf32>) -> tensor<4x10xf32>
    ```
  }];
  let options = [Option<"hardware", "hardware", "std::string", "\"cpu\"", "hardware file that costs are predicted from">];
}

def VerifyPartitionPass : Pass<"par-verify-partition", "::mlir::ModuleOp"> {
  let summary = "gate: what must hold after Partition";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: at a fragment that is not local, an op that still carries a sharding,
    or a par.reshard in a step.

    ```
    par.fragment @f(...) attributes {stage = @s0, kind = #par.fragment_kind<forward>} { ... }    // not local: error
    ```
  }];
}

#endif
