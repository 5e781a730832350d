#ifndef PAR_SPLIT_PASSES_TD
#define PAR_SPLIT_PASSES_TD

include "mlir/Pass/PassBase.td"

def MoveBatchFirstPass : Pass<"par-move-batch-first", "::mlir::ModuleOp"> {
  let summary = "returns the batch of every output in dim 0";
  let description = [{
    Expects: @predict on the whole batch, as Import leaves it. Leaves: outputs with the batch in dim 0, so a microbatch
    is consecutive rows, as in inputs. The step's attribute `par.output_batch_dims` lists the model's batch dims.
    Fails: never; if the batch cannot be followed, -par-slice-microbatches fails.

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

def DropCoupledMetricsPass : Pass<"par-drop-coupled-metrics", "::mlir::ModuleOp"> {
  let summary = "removes scalar results beside the loss that microbatches cannot add up";
  let description = [{
    Expects: @eval and @train on the whole batch, the loss first among the results of @eval. Leaves: steps without the
    results that couple microbatches (the largest score of a batch), each with a warning. The loss stays.
    Fails: never; if the loss couples microbatches, -par-slice-microbatches fails.

    ```
    par.return %loss, %largest : tensor<f32>, tensor<f32>    // %largest = reduce max over the batch
    ```
    becomes
    ```
    par.return %loss : tensor<f32>
    ```
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1", "microbatches a step">];
}

def CountResultsPass : Pass<"par-count-results", "::mlir::ModuleOp"> {
  let summary = "returns the counts that scalar results of @eval are means over";
  let description = [{
    Expects: @eval on the whole batch (after Train). Leaves: further results of @eval, with which values of batches are
    put together. A scalar that is a mean over labels has "count(NAME)", the number of labels that count; a sum has
    "sum(NAME)", which is 1; a sum of several of these has "terms(NAME)", their number, and each as "term(NAME,i)" with
    its own further results; another form has "batch(NAME)", which is 1; a mean over samples has none.
    Fails: never.

    ```
    %0 = par.divide %sum, %labels : tensor<f32>
    par.return %0 : tensor<f32>
    ```
    becomes
    ```
    par.return %0, %labels : tensor<f32>, tensor<f32>    // outputs = ["loss", "count(loss)"]
    ```
  }];
}

def DistributeGradientsPass : Pass<"par-distribute-gradients", "::mlir::ModuleOp"> {
  let summary = "moves elements of a gradient on each stage that contributes to it, before the sum over stages";
  let description = [{
    Expects: steps after Train, with stages on ops of one stage. Leaves: a sum over stages whose elements then move into
    a gradient (rows of a table of biases that all layers add to their scores) becomes a sum of moved parts. Each stage
    accumulates and sends its part in the gradient's shape: 1.5 KiB of the table, not 12 MiB of scores' biases.
    Fails: never.

    ```
    %0 = par.add %a, %b : tensor<64xf32>    // of stages 0 and 1
    %1 = par.index_add %0, %i dim 0 size 4 {stage = 0} : tensor<64xf32>, tensor<64xi64> to tensor<4xf32>
    %g = par.gradient %1 of @table : tensor<4xf32>
    ```
    becomes
    ```
    %0 = par.index_add %a, %i dim 0 size 4 {stage = 0} : tensor<64xf32>, tensor<64xi64> to tensor<4xf32>
    %1 = par.index_add %b, %i dim 0 size 4 {stage = 1} : tensor<64xf32>, tensor<64xi64> to tensor<4xf32>
    %2 = par.add %0, %1 : tensor<4xf32>
    %g = par.gradient %2 of @table : tensor<4xf32>
    ```
  }];
}

def SliceMicrobatchesPass : Pass<"par-slice-microbatches", "::mlir::ModuleOp"> {
  let summary = "slices a step into a loop over microbatches";
  let description = [{
    Expects: steps of tensor ops on the whole batch (after Train). Leaves: a `par.loop` of the ops on slices of the
    batch, whose results are the sums over the batch; ops that need finished sums follow it. A loop of its own before
    it computes sums that depend only on data, and sums of forward that are needed together with slices. Inputs have
    the shape (m, B/m, ...). One microbatch gives the same form.
    Fails: at an op that slices the batch in another way, or that mixes a slice of the batch with a sum over it, if
    that sum depends on another such sum or on gradients.

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
    tensor op in and after loops. A forward op without a hint goes to the latest stage that it depends on, a backward op
    to the earliest, an update to the stage that owns its variable. Ops that depend on no input or parameter are cloned
    to each stage that uses them.
    Fails: if a forward value would have to go to an earlier stage.

    ```
    %1 = par.negate %0 {stage = 1}    // %2 = par.negate %1 becomes %2 = par.negate %1 {stage = 1}
    ```
  }];
}

def LiftInvariantsPass : Pass<"par-lift-invariants", "::mlir::ModuleOp"> {
  let summary = "lifts loop-invariant values out of the loop over microbatches";
  let description = [{
    Expects: steps after par-assign-stages. Leaves: before a loop the values that depend only on variables and on inputs
    that are not sliced, if a value has at least `min-bytes` and no more bytes than its inputs: weights rounded to bf16,
    normalised or quantised. Equal values are merged. Layout ops and broadcasts stay at their use, where they cost
    nothing. Unchanged: a loop that runs once and forward only, and a stage on which the lifted values would take more
    than `max-bytes` together, before they are sharded. Masters, parameters of at least `masters` elements, are rounded
    before every loop in any case: their f32 shards are gathered rounded.
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
    Option<"minBytes", "min-bytes", "int64_t", "16384", "smaller values are recomputed at each use">,
    Option<"maxBytes", "max-bytes", "int64_t", "0", "maximum kept on one stage, before it is sharded; 0: no limit">,
    Option<"masters", "masters", "int64_t", "-1",
           "minimum elements of parameters that are always rounded before the loop; -1: none">,
  ];
}

def FormFragmentsPass : Pass<"par-form-fragments", "::mlir::ModuleOp"> {
  let summary = "outlines each stage's ops into fragments, with transfers between stages";
  let description = [{
    Expects: steps after par-assign-stages. Leaves: only the seven step ops, on `!par.dist` values of unknown sharding.
    Forward and backward of a stage are different fragments. Residuals are results of one and arguments of the other;
    both compute constants and broadcasts of variables (a norm's weight over its rows). A value used on several stages
    is transferred from each user stage to the next. A variable that several stages use is owned by the first and copied
    to the others. The step's attribute `par.unaccumulated` lists the variables whose gradients no loop accumulates,
    as they depend on sums over all microbatches.
    Fails: never on its own; the gate -par-verify-split checks the outcome.

    ```
    %a = par.run @train.s0.forward(%w, %x) : ... -> !par.dist<tensor<8x256xf32>, @s0, ?>
    %b = par.transfer %a : !par.dist<tensor<8x256xf32>, @s0, ?> to !par.dist<tensor<8x256xf32>, @s1, ?>
    ```
  }];
}

def DelayReadsPass : Pass<"par-delay-reads", "::mlir::ModuleOp"> {
  let summary = "asynchronous schedules: microbatches compute with stale parameters";
  let description = [{
    Expects: steps after -par-form-fragments. Leaves: in steps that write, the loop's reads of
    parameters are stale by the number of updates that the option gives for their stage; reads after the loop see the
    last write. The attribute `par.calls` is the number of batches between two flushes. With one call nothing changes,
    as no write comes between. State that each batch needs of its own is computed at the batch's begin or in its
    forward: counters of random draws count on before the loop (`count`), and each microbatch takes the number along
    (`counted`); moving statistics are computed from sums of forward, apart from the update (`move`).
    Fails: if the loop reads something else that the step writes, if values of all stages are combined (norms of all
    gradients), for which an asynchronous schedule does not wait, and if parameters of several stages (tied ones) have
    another staleness on each.

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
  let summary = "gate after Split: steps have only step ops";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: if a step has an op other than the seven, or a value that is not
    `!par.dist`, or if a fragment reads or writes variables.

    ```
    %0 = par.negate %x : tensor<4xf32>    // in a step: error
    ```
  }];
}

#endif
