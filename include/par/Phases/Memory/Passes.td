#ifndef PAR_MEMORY_PASSES_TD
#define PAR_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignBuffersPass : Pass<"par-assign-buffers", "::mlir::ModuleOp"> {
  let summary = "gives every value of a program a buffer";
  let description = [{
    Expects: programs whose blocks hold launches, communication, loads and stores (after Kernels). Leaves: every result
    is stored to one buffer at once and loaded from it where it is used; a result that its kernel makes in place, or
    that a collective reduces, shares its operand's buffer where nobody needs the old bytes, else these are copied first
    (a load that is stored elsewhere is a copy). What kernels only reshape, or take the first rows of, lies where it
    lay: others load it under that shape. Where zeros are added behind all rows, these alone are written. With
    `grow-state`, state has room for the rows that zeros are added to it for, or of which the first are stored to it.
    Fails: never on its own; the gate -par-verify-memory checks the outcome.

    ```
    %1 = par.launch @k(%0) : (tensor<4xf32>) -> tensor<4xf32>
    par.store %1 to @forward.t0 : tensor<4xf32>
    %2 = par.load @forward.t0 : tensor<4xf32>
    ```
  }];
  let options = [Option<"growState", "grow-state", "bool", "true", "state may have room for more rows than its own">];
}

def OffloadPass : Pass<"par-offload", "::mlir::ModuleOp"> {
  let summary = "moves variables, and what forward keeps for backward, into the host's memory";
  let description = [{
    Expects: programs after -par-assign-buffers. Leaves: every buffer that the options mean with the mark `host`: the
    optimizer's states (`states`, or those of parameters named in `states-of`), parameters (`parameters`,
    `parameters-of`), and what forward keeps for backward (`saved`; of 1,024 elements or more). A block that uses one
    copies it into a temporary buffer, and back if it has changed. A copy in stands before the op that first uses what
    comes before, so that it may run beside that op; a copy out behind the last use. A use that more than `far` ops with
    uses of others stand before copies in anew, so that no copy stays through a block. Bundle gives these copies a queue
    for each direction.
    Fails: never on its own; the gate -par-verify-memory checks the outcome.

    ```
    par.buffer @m state of "m" : tensor<4xf32> {host}
    par.buffer @m.dev temp : tensor<4xf32>
    ```
  }];
  let options = [
    Option<"states", "states", "bool", "false", "the optimizer's states">,
    Option<"parameters", "parameters", "bool", "false", "all parameters">,
    Option<"saved", "saved", "bool", "false", "what forward keeps for backward">,
    ListOption<"statesOf", "states-of", "std::string", "parameters whose states these are">,
    ListOption<"parametersOf", "parameters-of", "std::string", "these parameters">,
    Option<"far", "far", "unsigned", "32", "ops with uses of others that may stand between two uses of one copy">];
}

def PackMemoryPass : Pass<"par-pack-memory", "::mlir::ModuleOp"> {
  let summary = "gives every buffer its offsets in the arena";
  let description = [{
    Expects: programs after -par-assign-buffers. Leaves: `at` on every buffer: state first, one after the other; all
    else packed in one pool by the positions of the flattened entries at which each slot is alive; what is sent to
    another stage stays alive until it is written anew. Buffers in the host's
    memory lie one after the other from offset 0 of its own arena.
    Fails: if a rank of a role needs more than `limit` bytes.

    ```
    par.buffer @act temp by mb depth 2 : tensor<4xf32> at [0, 256]
    ```
  }];
  let options = [Option<"limit", "limit", "int64_t", "0", "bytes a rank may use; 0: unlimited">];
}

def VerifyMemoryPass : Pass<"par-verify-memory", "::mlir::ModuleOp"> {
  let summary = "gate: what must hold after Memory";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: at a buffer without offsets, a result of a program that is not
    stored at once, or one that takes over an operand and lies in another buffer than that; at an op other than a
    copy that touches the host's memory, and a buffer there that the runtime writes; at a `par.done` of what no
    collective with a queue has written last.

    ```
    par.buffer @act temp : tensor<4xf32>    // no offsets: error
    ```
  }];
}

#endif
