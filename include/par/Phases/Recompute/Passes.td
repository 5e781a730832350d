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

    `full` saves only the forward's arguments: a microbatch in flight costs its stage input; the price is one more
    forward. A stage that never has two microbatches in flight keeps its values, since recomputing them at once would
    not lower the peak. `each` saves the inputs of modules that match a pattern and repeats the ops inside: the price is
    one more forward of these modules, the peak all modules' inputs and one module's values.
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
    Option<"mode", "mode", "std::string", "\"none\"", "none, full or each">,
    ListOption<"each", "each", "std::string", "patterns of modules of which only the inputs are saved">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "determines the microbatches in flight on a stage">,
    Option<"keepOperands", "keep-operands", "bool", "false", "saves operands of the forward's matmuls">
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
