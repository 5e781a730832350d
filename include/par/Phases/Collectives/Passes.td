#ifndef PAR_COLLECTIVES_PASSES_TD
#define PAR_COLLECTIVES_PASSES_TD

include "mlir/Pass/PassBase.td"

def BucketCollectivesPass : Pass<"par-bucket-collectives", "::mlir::ModuleOp"> {
  let summary = "joins collectives of a block into buckets";
  let description = [{
    Expects: programs whose blocks hold launches and collectives (after Kernels, before Memory). Leaves: collectives
    over one group and of one kind joined, up to `bytes` a bucket (the larger of operands and results), at most 64
    values. What only leaves the block or is added to what is stored (gradients) stands where the bucket's last operand
    is made, so none is joined that something waits for before; so do scalars, whatever their bytes. What is made from
    stored values alone (parameters that are gathered) stands where the first result is needed.
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

def SplitCollectivesPass : Pass<"par-split-collectives", "::mlir::ModuleOp"> {
  let summary = "starts collectives early and ends them where their results are needed";
  let description = [{
    Expects: programs whose blocks hold launches and collectives (after Kernels, bucketing and -par-overlap-collectives,
    before Memory). Leaves: collectives of more than scalars with the attribute `queue`, their kind, and a `par.done`
    each. What is made from stored values alone starts where the one `window` before it ends, the first ones at the
    block's begin, and ends where it is needed. What nothing in the block needs starts where its last operand is made
    and ends before the one `window` behind it starts, the last ones at the block's end; what adds the results to stored
    sums moves behind that. So memory holds `window` more of each than without. Of the others, gathers, scatters and
    exchanges start where they can and end where they are needed if that leaves a launch between, or another one of the
    same kind and group under way (chunks of -par-decompose-collectives: one queue, so that they share the link in
    turns); all-reduces stay.
    Fails: never.

    ```
    %1 = par.all_gather %0 dims [0] over ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
    ```
    becomes
    ```
    %1 = par.all_gather %0 dims [0] over ["dp"] {queue = "all_gather"} : (tensor<4xf32>) -> tensor<8xf32>
    ...
    %2 = par.done %1 of %0 : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
    ```
  }];
  let options = [Option<"window", "window", "unsigned", "1",
      "how many may be under way of each kind; 0: none is split">];
}

def LevelCollectivesPass : Pass<"par-level-collectives", "::mlir::ModuleOp"> {
  let summary = "takes collectives that join hosts apart, into some within hosts and some between them";
  let description = [{
    Expects: programs whose blocks hold launches and collectives (after Kernels, and behind all that groups collectives
    and moves their ends; before Memory), and a hardware file that says what hosts have between them. Leaves: in place
    of each collective whose group has several ranks on each of several hosts, on the same queue: of an all_reduce of a
    number of elements that the ranks of a host divide, a reduce_scatter within hosts, an all_reduce between them, an
    all_gather within; of an all_gather one between hosts and one within; of a reduce_scatter one within and one
    between. `within` are the minor axes of its group. Within hosts gathers and scatters do so block by block
    (`by_blocks`: dim 1, a group of one for each block of dim 0), so that nothing is moved on a rank; where the
    collective has no queue, these have the attribute `level`. Sums are those of a host's ranks in their order, and of
    these the sum over hosts in theirs; what is summed in bf16 is rounded on both levels. One that has two levels in
    less time by the hardware file, or with `always` each.
    Fails: where there is no such hardware file; with `always`, where there is no such collective.

    On hosts of two ranks, for "dp.0" and "dp.1" of two each
    ```
    %1 = par.all_reduce sum %0 over ["dp.0", "dp.1"] : (tensor<8xf32>) -> tensor<8xf32>
    ```
    becomes
    ```
    %1 = par.launch @kernel(%0) : (tensor<8xf32>) -> tensor<2x4xf32>        // a view
    %2 = par.reduce_scatter sum %1 dims [0] over ["dp.1"] {level} : (tensor<2x4xf32>) -> tensor<1x4xf32>
    %3 = par.all_reduce sum %2 over ["dp.0"] {level} : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %4 = par.all_gather %3 dims [0] over ["dp.1"] {level} : (tensor<1x4xf32>) -> tensor<2x4xf32>
    %5 = par.launch @kernel_0(%4) : (tensor<2x4xf32>) -> tensor<8xf32>
    ```
  }];
  let options = [Option<"always", "always", "bool", "false", "also where it does not save time">,
                 Option<"hardware", "hardware", "std::string", "\"cpu\"",
                        "hardware file that costs are predicted from">,
                 Option<"said", "said", "std::string", "\"\"",
                        "place of the plan (file:line:column) that says `always`">];
}

def VerifyCollectivesPass : Pass<"par-verify-collectives", "::mlir::ModuleOp"> {
  let summary = "gate: what must hold after Collectives";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: where a collective joins more than 64 values; where one with a queue
    of its own is needed in its block, but by its `par.done` or the next one on its queue; with `overlap`, where one has
    none whose results only leave the block, or that is made from stored values alone.

    ```
    %1 = par.all_reduce sum %0 over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>    // error
    par.store %1 to @train.backward.sum.w : tensor<4xf32>
    ```
  }];
  let options = [Option<"overlap", "overlap", "bool", "true", "what only leaves a block must not keep it waiting">];
}

#endif
