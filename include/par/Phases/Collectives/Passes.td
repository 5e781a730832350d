#ifndef PAR_COLLECTIVES_PASSES_TD
#define PAR_COLLECTIVES_PASSES_TD

include "mlir/Pass/PassBase.td"

def AdvanceOperandsPass : Pass<"par-advance-operands", "::mlir::ModuleOp"> {
  let summary = "moves pads, casts and last additions of gradients to where the gradients are computed";
  let description = [{
    Expects: programs whose blocks hold launches and collectives (after Kernels, before bucketing). Leaves: generated
    launches, and fills, that only make operands of all-reduces and reduce-scatters whose results only leave the block
    right after their own last operand (one that overwrites an operand: after the other readers of that, too; a loaded
    operand moves along, up to the last store to its buffer), so that later passes can start the reductions there.
    Matmuls stay where they are, and so do launches that overwrite a buffer. Fails: never.

    ```
    %0 = par.launch @gradient(%a) : (tensor<3xf32>) -> tensor<3xf32>
    ...
    %1 = par.launch @pad(%0) : (tensor<3xf32>) -> tensor<4xf32>
    %2 = par.reduce_scatter sum %1 dims [0] over ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
    ```
    becomes
    ```
    %0 = par.launch @gradient(%a) : (tensor<3xf32>) -> tensor<3xf32>
    %1 = par.launch @pad(%0) : (tensor<3xf32>) -> tensor<4xf32>
    ...
    %2 = par.reduce_scatter sum %1 dims [0] over ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
    ```
  }];
}

def BucketCollectivesPass : Pass<"par-bucket-collectives", "::mlir::ModuleOp"> {
  let summary = "joins collectives of a block into buckets";
  let description = [{
    Expects: programs whose blocks hold launches and collectives (after Kernels, before Memory). Leaves: collectives
    over one group and of one kind joined, up to `bytes` a bucket (the larger of operands and results), at most 64
    values. A bucket of results that only leave the block or are added to stored values (gradients) follows its last
    operand; a collective with a user before that place is not joined. Scalars of any number join, too. A bucket that
    needs only stored values (all-gathered parameters) precedes the first use of its results.
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
  let summary = "makes all-reduces asynchronous whose results only leave the block";
  let description = [{
    Expects: programs whose blocks hold launches and collectives (after Kernels and bucketing, before Memory). Leaves:
    such all-reduces right after their last operand, with the attribute `queue`. Bundle gives them a queue and
    communicators of their own, and makes users of the results wait. Scalars stay.
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
    before Memory). Leaves: collectives, except of scalars, with the attribute `queue`, their kind, and a `par.done`
    each:
    - A collective that needs only stored values starts where the one `window` before it ends, the first ones at the
      block's begin. It ends at its first use.
    - A collective without a use in the block starts after its last operand and ends before the one `window` after it
      starts, the last ones at the block's end. Ops that add its results to stored sums move after its end.
    - Other gathers, scatters and exchanges start after their last operand and end at their first use, if a launch is
      between, or another one of the same kind and group is under way (chunks of -par-decompose-collectives: one queue,
      so they share the link in turns). Other all-reduces stay.
    Memory holds `window` more results of each kind than without the pass.
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
      "maximum number under way of each kind; 0: none is split">];
}

def LevelCollectivesPass : Pass<"par-level-collectives", "::mlir::ModuleOp"> {
  let summary = "lowers collectives over several hosts to collectives within and between hosts";
  let description = [{
    Expects: programs whose blocks hold launches and collectives (after Kernels and all passes that group collectives
    and move their ends; before Memory), and a hardware file with the link between hosts. Leaves: each collective whose
    group has several ranks on each of several hosts becomes a chain on the same queue, if the chain takes less time by
    the hardware file, or with `always`:
    - all_reduce, if the ranks of a host divide its number of elements: a reduce_scatter within hosts, an all_reduce
      between them, an all_gather within;
    - all_gather: one between hosts, one within;
    - reduce_scatter: one within hosts, one between.

    "Within" are the minor axes of the group. Gathers and scatters within hosts work block by block (`by_blocks`: dim 1,
    a group of one for each block of dim 0), so no element is moved on a rank. A chain without a queue has the attribute
    `level`. A sum adds a host's ranks in their order, then the hosts in theirs; bf16 sums are rounded on both levels.
    Fails: if there is no such hardware file; with `always`, if there is no such collective.

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
  let options = [Option<"always", "always", "bool", "false", "also if it does not save time">,
                 Option<"hardware", "hardware", "std::string", "\"cpu\"",
                        "hardware file that costs are predicted from">,
                 Option<"said", "said", "std::string", "\"\"",
                        "place of the plan (file:line:column) that says `always`">];
}

def VerifyCollectivesPass : Pass<"par-verify-collectives", "::mlir::ModuleOp"> {
  let summary = "gate after Collectives: asynchronous collectives have valid uses";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: if a collective joins more than 64 values; if a result of a
    collective with a queue has a user in its block other than its `par.done` or the next one on its queue; with
    `overlap`, if a collective has no queue, but its results only leave the block or it needs only stored values.

    ```
    %1 = par.all_reduce sum %0 over ["dp"] : (tensor<4xf32>) -> tensor<4xf32>    // error
    par.store %1 to @train.backward.sum.w : tensor<4xf32>
    ```
  }];
  let options = [Option<"overlap", "overlap", "bool", "true",
                        "collectives whose results only leave a block must be asynchronous">];
}

#endif
