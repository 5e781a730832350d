#ifndef PAR_MEMORY_PASSES_TD
#define PAR_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignBuffersPass : Pass<"par-assign-buffers", "::mlir::ModuleOp"> {
  let summary = "gives every value of a program a buffer";
  let description = [{
    Expects: programs whose blocks hold launches, communication, loads and stores (after Kernels). Leaves: every result
    is stored to one buffer at once and loaded from it where it is used; a result that its kernel makes in place, or that
    a collective reduces, shares its operand's buffer where nobody needs the old bytes, else these are copied first
    (a load that is stored elsewhere is a copy).
    Fails: never on its own; the gate -par-verify-memory checks the outcome.

    ```
    %1 = par.launch @k(%0) : (tensor<4xf32>) -> tensor<4xf32>
    par.store %1 to @forward.t0 : tensor<4xf32>
    %2 = par.load @forward.t0 : tensor<4xf32>
    ```
  }];
}

def PackMemoryPass : Pass<"par-pack-memory", "::mlir::ModuleOp"> {
  let summary = "gives every buffer its offsets in the arena";
  let description = [{
    Expects: programs after -par-assign-buffers. Leaves: `at` on every buffer: state first, one after the other; all else
    packed in one pool by the positions of the flattened entries at which each slot is alive.
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
    stored at once, or one that takes over an operand and lies in another buffer than that.

    ```
    par.buffer @act temp : tensor<4xf32>    // no offsets: error
    ```
  }];
}

#endif
