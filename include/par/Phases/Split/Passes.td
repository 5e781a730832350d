#ifndef PAR_SPLIT_PASSES_TD
#define PAR_SPLIT_PASSES_TD

include "mlir/Pass/PassBase.td"

def MoveBatchFirstPass : Pass<"par-move-batch-first", "::mlir::ModuleOp"> {
  let summary = "returns the batch of every output in dim 0";
  let description = [{
    Expects: @predict on the whole batch, as Import leaves it. Leaves: outputs whose batch is another dim transposed, so
    that a microbatch of one is consecutive rows, as of inputs; the step's attribute `par.output_batch_dims` says where
    the model has it. Fails: never; where the batch cannot be followed, -par-slice-microbatches says so.

    ```
    par.return %y : tensor<3x8xf32>    // the batch of 8
    ```
    becomes
    ```
    %0 = par.transpose %y [1, 0] : tensor<3x8xf32> to tensor<8x3xf32>
    par.return %0 : tensor<8x3xf32>
    ```
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1", "microbatches a step">];
}

def DistributeGradientsPass : Pass<"par-distribute-gradients", "::mlir::ModuleOp"> {
  let summary = "moves a gradient of several stages where each contributes to it";
  let description = [{
    Expects: steps after Train, with stages on what is made on one. Leaves: where stages' parts of a gradient were added
    and the sum's elements then moved, as to the rows of a table of biases that all layers add to their scores, each
    part moved on its own stage: it is accumulated and sent as what it is a part of (1.5 KiB of a table, not 12 MiB of
    scores' biases).
    Fails: never.

    ```
    %0 = par.add %a, %b : tensor<64xf32>    // of stages 0 and 1
    %1 = par.scatter_add %0, %i dim 0 size 4 {stage = 0} : tensor<64xf32>, tensor<64xi64> to tensor<4xf32>
    %g = par.gradient %1 of @table : tensor<4xf32>
    ```
    becomes
    ```
    %0 = par.scatter_add %a, %i dim 0 size 4 {stage = 0} : tensor<64xf32>, tensor<64xi64> to tensor<4xf32>
    %1 = par.scatter_add %b, %i dim 0 size 4 {stage = 1} : tensor<64xf32>, tensor<64xi64> to tensor<4xf32>
    %2 = par.add %0, %1 : tensor<4xf32>
    %g = par.gradient %2 of @table : tensor<4xf32>
    ```
  }];
}

def SliceMicrobatchesPass : Pass<"par-slice-microbatches", "::mlir::ModuleOp"> {
  let summary = "cuts a step in time: a loop over microbatches";
  let description = [{
    Expects: steps of tensor ops on the whole batch (after Train). Leaves: what is sliced along the batch in a
    `par.loop`, sums over the batch as its results, what needs finished sums behind it; sums that depend on data alone
    come from a loop of their own before it, and so do sums of forward that are needed together with slices. Inputs have
    the shape (m, B/m, ...). One microbatch gives the same form.
    Fails: at an op that mixes a slice of the batch with a sum over it that depends on another such sum or on gradients,
    or cuts the batch in another way.

    ```
    %s = par.reduce sum %x dims [0] : tensor<8xf32> to tensor<f32>
    ```
    becomes, with 4 microbatches,
    ```
    %s = par.loop 4 (%x) : (tensor<4x2xf32>) -> tensor<f32> {
    ^bb0(%i: tensor<i64>, %xi: tensor<2xf32>):
      %p = par.reduce sum %xi dims [0] : tensor<2xf32> to tensor<f32>
      par.yield [sum] %p : tensor<f32>
    }
    ```
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1", "microbatches a step">];
}

def AssignStagesPass : Pass<"par-assign-stages", "::mlir::ModuleOp"> {
  let summary = "gives every op of a step its stage";
  let description = [{
    Expects: stage hints on forward ops, copied by Train to the backward ops made from them. Leaves: a stage on every
    tensor op in loops and behind them: a forward op without one goes to the latest stage that it depends on, a backward
    op to the earliest, an update to the stage that owns its variable. Ops that depend on no input or parameter are
    cloned to each stage that uses them.
    Fails: if a forward value would have to go backwards.

    ```
    %1 = par.negate %0 {stage = 1}    // %2 = par.negate %1 becomes %2 = par.negate %1 {stage = 1}
    ```
  }];
}

def LiftInvariantsPass : Pass<"par-lift-invariants", "::mlir::ModuleOp"> {
  let summary = "computes once a step what is the same for every microbatch";
  let description = [{
    Expects: steps after par-assign-stages. Leaves: before a loop what it computed of variables and of inputs that no
    microbatch cuts, where keeping that takes at least `min-bytes` and no more memory than what it is made of: weights
    that are rounded to bf16, normalised or quantised. Equal ones are one. What only moves or spreads elements stays
    where it is used, as it costs nothing there; a loop that runs once and forward only stays as it is, and so does a
    stage on which all of it together would take more than `max-bytes`, however it is sharded later.
    Fails: never.

    ```
    %r = par.loop 4 (%x) : ... {
    ^bb0(%i: tensor<i64>, %xi: tensor<8x64xbf16>):
      %c = par.convert %w : tensor<64x256xf32> to tensor<64x256xbf16>
    ```
    becomes
    ```
    %c = par.convert %w : tensor<64x256xf32> to tensor<64x256xbf16>
    %r = par.loop 4 (%x) : ...
    ```
  }];
  let options = [
    Option<"minBytes", "min-bytes", "int64_t", "16384", "what is smaller is made again at each use">,
    Option<"maxBytes", "max-bytes", "int64_t", "0", "kept on one stage, before it is sharded; 0: as much as there is">,
  ];
}

def FormFragmentsPass : Pass<"par-form-fragments", "::mlir::ModuleOp"> {
  let summary = "outlines what each stage does into fragments, with transfers between stages";
  let description = [{
    Expects: steps after par-assign-stages. Leaves: only the seven step ops, on `!par.dist` values of unknown sharding;
    forward and backward of a stage are different fragments, residuals results of one and arguments of the other, but
    for constants and what is only spread of variables (a norm's weight over its rows), which both make; a value used on
    several stages travels from user to next user; variables that several stages use are owned by the
    first and copied to the others. The step's attribute `par.unaccumulated` names the variables whose gradients are
    made of sums over all microbatches and so accumulated by no loop.
    Fails: never on its own; the gate -par-verify-split checks the outcome.

    ```
    %a = par.run @train.s0.forward(%w, %x) : ... -> !par.dist<tensor<8x256xf32>, @s0, ?>
    %b = par.transfer %a : !par.dist<tensor<8x256xf32>, @s0, ?> to !par.dist<tensor<8x256xf32>, @s1, ?>
    ```
  }];
}

def DelayReadsPass : Pass<"par-delay-reads", "::mlir::ModuleOp"> {
  let summary = "asynchronous schedules: microbatches compute with the parameters of some updates ago";
  let description = [{
    Expects: steps after -par-form-fragments. Leaves: in steps that write, parameters that the loop reads on a stage
    read `behind` as many writes as the option says of it, while what stands behind the loop reads what was written
    last; and the attribute `par.calls`, the number of batches that follow one another without a flush. With one call
    nothing changes: no write stands between. What a batch needs of its own, though the one before it has not ended, is
    made where it begins or in its forward: counters of what is drawn count on before the loop (`count`), and each
    microbatch takes the number along (`counted`); moving statistics are made of what forward sums, apart from the
    update (`move`).
    Fails: where the loop reads something else that the step writes, where numbers of all stages are combined (norms of
    all gradients), which an asynchronous schedule does not wait for, and where parameters of several stages (tied ones)
    are not as many updates behind on each.

    ```
    %w = par.read @w : !par.dist<tensor<4xf32>, @s0, ?>
    ```
    becomes, for the loop, with behind=1,0
    ```
    %0 = par.read @w behind 1 : !par.dist<tensor<4xf32>, @s0, ?>
    ```
  }];
  let options = [
    ListOption<"behind", "behind", "int64_t", "updates of each stage">,
    Option<"calls", "calls", "int64_t", "1", "batches between two flushes">,
  ];
}

def VerifySplitPass : Pass<"par-verify-split", "::mlir::ModuleOp"> {
  let summary = "gate: what may no longer be there after Split";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: where a step holds another op than the seven, or a value that is no
    `!par.dist`, or a fragment that reads or writes variables.

    ```
    %0 = par.negate %x : tensor<4xf32>    // in a step: error
    ```
  }];
}

#endif
