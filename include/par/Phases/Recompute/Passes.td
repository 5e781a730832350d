#ifndef PAR_RECOMPUTE_PASSES_TD
#define PAR_RECOMPUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def RecomputeValuesPass : Pass<"par-recompute-values", "::mlir::ModuleOp"> {
  let summary = "moves the cut between forward and backward: what is saved, what is computed again";
  let description = [{
    Expects: local fragments (after Partition), where the backward takes whatever it needs of the forward. Leaves: the
    same step, in which backward fragments repeat a part of the forward, collectives included, just before they need
    it; what nobody needs any more is gone from forward, backward and their runs. Whatever `mode`, a value is not saved
    that follows from saved ones by ops that fuse (costs flops, no memory traffic), or that the backward alone needs and
    can compute instead. With `keep-operands` (cuda) what arithmetic makes for a product of the forward is saved where
    the backward needs it too: a library reads it from memory, so that computing it again is a kernel that moves it. But
    a weight in bf16 is not saved once for each microbatch in flight: where there are several, it is converted again.

    `full` saves nothing but the forward's arguments: a microbatch in flight costs its stage input; the price is one
    more forward. A stage that never has two microbatches in flight keeps its values: computing them again at once would
    lower no peak. `each` saves what enters a module that matches a pattern and repeats what lies inside: the price is
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
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "says how many microbatches a stage has in flight">,
    Option<"keepOperands", "keep-operands", "bool", "false", "saves what products of the forward read">
  ];
}

def SplitBackwardPass : Pass<"par-split-backward", "::mlir::ModuleOp"> {
  let summary = "splits backward in two where the schedule runs weight gradients in slots of their own";
  let description = [{
    Expects: local fragments. Leaves: as it was where the schedule has no such slots; else each backward of a loop as
    two fragments, `backward` with what reaches another stage and `weight` with what reaches sums alone. What the second
    needs of the first is a result of the one and an argument of the other, unless it follows from what both have by ops
    that fuse. Where nobody waits for any of it, as on the first stage, all of backward is `weight`.
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
  let summary = "gate: what must hold after Recompute";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: where a local fragment holds an op whose results nobody uses, a
    forward returns its own argument, or a backward takes what it could compute for nothing.

    ```
    %1 = par.constant dense<0.0> : tensor<4xf32>      // returned by a forward for its backward: error
    ```
  }];
  let options = [
    Option<"keepOperands", "keep-operands", "bool", "false", "what products of the forward read may be saved">
  ];
}

#endif
