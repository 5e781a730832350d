#ifndef PAR_RECOMPUTE_PASSES_TD
#define PAR_RECOMPUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def RecomputeFragmentsPass : Pass<"par-recompute-fragments", "::mlir::ModuleOp"> {
  let summary = "computes residuals again in backward instead of keeping them";
  let description = [{
    Expects: steps of local fragments (after Partition); a backward fragment takes residuals that the forward fragment of
    its stage gives.
    Leaves: with `mode=none` everything as it is. With `mode=full` a backward fragment takes the arguments of its forward
    fragment, begins with a clone of what it needs of its body, and nothing that forward computes is kept for it. With
    `mode=each` values inside the modules that `each` matches are computed again from what flows into the module; if that
    is not kept for another reason, from what flows into the modules before it. Forward results that nobody uses any more
    are gone. Communication inside a recomputed part is done again.
    Fails: if `mode` is none of these, or `each` is no pattern.

    ```
    %a, %r = par.run @s0.forward(%x, %w)             %a = par.run @s0.forward(%x, %w)
    %d = par.run @s0.backward(%da, %r)       to      %d = par.run @s0.backward(%da, %x, %w)
    ```
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"none\"", "none, full or each">,
    Option<"each", "each", "std::string", "\"\"", "pattern of the modules of mode=each">
  ];
}

def VerifyRecomputePass : Pass<"par-verify-recompute", "::mlir::ModuleOp"> {
  let summary = "gate: what may be kept for backward after Recompute";
  let description = [{
    Expects: anything, and the options of -par-recompute-fragments.
    Leaves: it unchanged.
    Fails: with `mode=full` where a backward run takes a result of a forward run of its stage; with `mode=each` where it
    takes one that is computed inside a matching module and used by no other; with any mode where a forward run has a
    result that nobody uses.

    ```
    %d = par.run @s0.backward(%da, %r)    // %r from @s0.forward: error with mode=full
    ```
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"none\"", "none, full or each">,
    Option<"each", "each", "std::string", "\"\"", "pattern of the modules of mode=each">
  ];
}

#endif
