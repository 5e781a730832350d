#ifndef PAR_COLLECTIVES_PASSES_TD
#define PAR_COLLECTIVES_PASSES_TD

include "mlir/Pass/PassBase.td"

def FlattenCollectivesPass : Pass<"par-flatten-collectives", "::mlir::ModuleOp"> {
  let summary = "makes gathers, scatters and exchanges work along dim 0";
  let description = [{
    Expects: local fragments (after Partition). Leaves: every all_gather, reduce_scatter and all_to_all with the group's
    members as dim 0, where the parts of a member lie one after the other in memory; transposes and reshapes around it
    put them where they belong. What works along dim 0 already stays.
    Fails: never.

    ```
    %1 = par.all_gather %0 dims [1] over ["tp"] : (tensor<4x8xf32>) -> tensor<4x16xf32>
    ```
    becomes
    ```
    %1 = par.reshape %0 : tensor<4x8xf32> to tensor<1x4x8xf32>
    %2 = par.all_gather %1 dims [0] over ["tp"] : (tensor<1x4x8xf32>) -> tensor<2x4x8xf32>
    %3 = par.transpose %2 [1, 0, 2] : tensor<2x4x8xf32> to tensor<4x2x8xf32>
    %4 = par.reshape %3 : tensor<4x2x8xf32> to tensor<4x16xf32>
    ```
  }];
}

def BucketCollectivesPass : Pass<"par-bucket-collectives", "::mlir::ModuleOp"> {
  let summary = "joins all-reduces of a block into buckets";
  let description = [{
    Expects: programs whose blocks hold launches and collectives (after Kernels, before Memory). Leaves: all-reduces over
    one group and of one kind joined: those whose results only leave the block (gradients) up to `bytes` a bucket, scalars
    without a limit, at most 64 values a bucket. A bucket stands where its last operand is made, so none is joined that
    something waits for before.
    Fails: never.

    ```
    %2 = par.all_reduce sum %0 over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    %3 = par.all_reduce sum %1 over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>
    ```
    becomes
    ```
    %2:2 = par.all_reduce sum %0, %1 over ["dp"] : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    ```
  }];
  let options = [Option<"bytes", "bytes", "int64_t", "26214400", "bytes of a bucket; 0: one value each, scalars too">];
}

def OverlapCollectivesPass : Pass<"par-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "lets all-reduces whose results only leave the block run beside what follows";
  let description = [{
    Expects: programs whose blocks hold launches and collectives (after Kernels and bucketing, before Memory). Leaves:
    such all-reduces right behind their last operand, with the attribute `queue`; Bundle gives them a queue and
    communicators of their own, and makes whoever touches the results wait. Scalars stay.
    Fails: never.

    ```
    %1 = par.all_reduce sum %0 over ["dp"] {queue = "data"} : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
}

def VerifyCollectivesPass : Pass<"par-verify-collectives", "::mlir::ModuleOp"> {
  let summary = "gate: what must hold after Collectives";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: where an all-reduce joins more than 64 values; where one with a queue
    of its own is needed in its block; with `overlap`, where one whose results only leave the block has none.

    ```
    %1 = par.all_reduce sum %0 over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>    // error
    par.store %1 to @train.backward.sum.w : tensor<4xf32>
    ```
  }];
  let options = [Option<"overlap", "overlap", "bool", "true", "what only leaves a block must not keep it waiting">];
}

#endif
