#ifndef PAR_RECOMPUTE_PASSES_TD
#define PAR_RECOMPUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def RecomputeValuesPass : Pass<"par-recompute-values", "::mlir::ModuleOp"> {
  let summary = "moves the cut between forward and backward: saves some values and recomputes others";
  let description = [{
    Expects: local fragments (after Partition), where the backward takes every value that it needs from the forward.
    Leaves: the same step, in which backward fragments repeat a part of the forward, collectives included, just before
    its use; unused values are gone from forward, backward and their runs. In every `mode`, a value is not saved if it
    follows from saved ones by ops that fuse (costs flops, no memory traffic), or if only the backward needs it and can
    compute it. With `keep-operands` (cuda) a computed operand of a forward matmul is saved if the backward needs it
    too: a library reads it from memory, so recomputing it would be a kernel of its own. But a weight in bf16 is not
    saved once for each microbatch in flight: if there are several, it is converted again.

    - `full` saves nothing but the forward's arguments if several microbatches are in flight: each costs its stage
      input. With one in flight that would lower no peak: the forward is cut into segments, whose inputs are saved, at
      the places with the lowest peak; the last segment, which backward needs at once, keeps its values. The price is
      one more forward.
    - `each` saves what enters a module that matches one of `patterns` and recomputes what lies inside: the price is
      one more forward of these modules, the peak all modules' inputs and one module's values.
    - `selective` recomputes the core of attention: from the dot that makes scores to the dot that reads them.
      Attention that is one op saves no scores, and stays.
    - `values` recomputes what matches `patterns`, from saved inputs; `keep` saves what matches, and nothing else.

    Fails: never on its own; the gate -par-verify-recompute checks the outcome.

    ```
    %a, %h = par.run @s0.forward(%w, %x) : ...        // %h = dot %x, %w; %a = tanh %h
    %d = par.run @s0.backward(%x, %h, %da) : ...
    ```
    becomes under `full`
    ```
    %a = par.run @s0.forward(%w, %x) : ...
    %d = par.run @s0.backward(%x, %da, %w) : ...      // begins with %h = dot %x, %w
    ```
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"none\"", "none, full, selective, each, values or keep">,
    ListOption<"patterns", "patterns", "std::string", "of each, values and keep">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "determines the microbatches in flight on a stage">,
    Option<"keepOperands", "keep-operands", "bool", "false", "saves operands of the forward's matmuls">,
    Option<"hardware", "hardware", "std::string", "\"cpu\"", "a hardware file, for the time of ops">,
    Option<"remarks", "remarks", "bool", "false", "prints the bytes and the time of each group of ranks">
  ];
}

def RecomputeToFitPass : Pass<"par-recompute-to-fit", "::mlir::ModuleOp"> {
  let summary = "recomputes the cheapest values by which ranks hold fewer bytes";
  let description = [{
    Expects: local fragments after -par-recompute-values. Leaves: the same step, in which the ranks of each role of
    `excess` hold so many bytes less at the begin of a backward, or as few as any choice that was tried; other roles are
    unchanged. With 0 bytes nothing is recomputed; then the choices at rising prices of a byte are found, for a search
    over plans. Costs are predicted times, of collectives too, so that one is recomputed only if nothing cheaper frees
    as many bytes. BudgetChoice.h has the problem, RecomputeChoice.h the exact solver.
    With `moves`, values may be copied to host memory instead, and back before backward reads them. Such results of
    forward have the attribute `par.host`, for Offload. A copy costs the time that no compute of its forward, or of its
    backward, runs beside. Values that are kept, moved and recomputed are one choice.
    Fails: on a role that is not STAGE=BYTES, and on an unknown hardware file.

    ```
    %a, %h, %g = par.run @s0.forward(%w, %x) : ...    // %h 48 MiB, 1 ms to compute; %g 48 MiB, 4 ms
    %d = par.run @s0.backward(%x, %h, %g, %da) : ...
    ```
    becomes with `excess=s0=40000000`
    ```
    %a, %g = par.run @s0.forward(%w, %x) : ...
    %d = par.run @s0.backward(%x, %g, %da, %w) : ...  // begins with %h = dot %x, %w
    ```
  }];
  let options = [
    ListOption<"excess", "excess", "std::string", "STAGE=BYTES by which the stage's ranks exceed their limit">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "determines the microbatches in flight on a stage">,
    Option<"keepOperands", "keep-operands", "bool", "false", "saves operands of the forward's matmuls">,
    Option<"hardware", "hardware", "std::string", "\"cpu\"", "a hardware file, for the time of ops">,
    Option<"moves", "moves", "bool", "false", "saved values may go to host memory">,
    Option<"remarks", "remarks", "bool", "false", "prints the choice of each group of ranks">
  ];
}

def SplitBackwardPass : Pass<"par-split-backward", "::mlir::ModuleOp"> {
  let summary = "splits backward in two where the schedule runs weight gradients in slots of their own";
  let description = [{
    Expects: local fragments. Leaves: each backward of a loop as two fragments, `backward` with the values that reach
    another stage and `weight` with those that only reach sums; unchanged if the schedule has no slots for weight
    gradients. A value that the second needs of the first is a result of the one and an argument of the other, unless
    it follows from values of both by ops that fuse. If no stage waits for any of it, as on the first stage, all of
    backward is `weight`.
    Fails: never.

    ```
    %db, %dw = par.run @s1.backward(%w, %h, %d) : ...        // %db to stage 0, %dw to a sum
    ```
    becomes
    ```
    %db, %dz = par.run @s1.backward(%w, %h, %d) : ...
    %dw = par.run @s1.weight(%dz, %b) : ...
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "a schedule of the solver, or the path of a table">
  ];
}

def VerifyRecomputePass : Pass<"par-verify-recompute", "::mlir::ModuleOp"> {
  let summary = "gate of Recompute";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: if a local fragment holds an unused op, a forward returns its own
    argument, or a backward takes a value that it could compute at no cost.

    ```
    %1 = par.constant dense<0.0> : tensor<4xf32>      // returned by a forward for its backward: error
    ```
  }];
  let options = [
    Option<"keepOperands", "keep-operands", "bool", "false", "operands of the forward's matmuls may be saved">
  ];
}

#endif
