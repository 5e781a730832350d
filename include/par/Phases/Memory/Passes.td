#ifndef PAR_MEMORY_PASSES_TD
#define PAR_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def DeferDonesPass : Pass<"par-defer-dones", "::mlir::ModuleOp"> {
  let summary = "ends collectives right before the first run that touches their results";
  let description = [{
    Expects: programs after Collectives, before buffers are assigned. Leaves: if a block with one run has ends of
    gathers, scatters or exchanges that nothing else of the block needs, and other runs, none of a later microbatch,
    stand between it and the first one that touches their results, the ends are in a block of their own before that. So
    are collectives that only work on the results. Operands are kept in buffers up to there, and the collectives are on
    the queue "deferred". Ends of results that the block computes with stay, views apart.
    Fails: never.

    ```
    par.block @last {
      %g = par.launch @gradient(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %r = par.reduce_scatter sum %g dims [0] over ["dp"] {queue = "reduce_scatter"} : (tensor<4xf32>) -> tensor<2xf32>
      %d = par.done %r of %g : (tensor<2xf32>, tensor<4xf32>) -> tensor<2xf32>
      par.store %d to @shard : tensor<2xf32>
    }
    par.entry @train runs [@last, @send, @update] microbatches [0, 0, 0]
    ```
    becomes
    ```
    par.block @last {
      %g = par.launch @gradient(%x) : (tensor<4xf32>) -> tensor<4xf32>
      par.store %g to @last.kept0 : tensor<4xf32>
      %k = par.load @last.kept0 : tensor<4xf32>
      %r = par.reduce_scatter sum %k dims [0] over ["dp"] {queue = "deferred"} : (tensor<4xf32>) -> tensor<2xf32>
      par.store %r to @shard : tensor<2xf32>
    }
    par.block @last.ends {
      %r = par.load @shard : tensor<2xf32>
      %k = par.load @last.kept0 : tensor<4xf32>
      %d = par.done %r of %k : (tensor<2xf32>, tensor<4xf32>) -> tensor<2xf32>
    }
    par.entry @train runs [@last, @send, @last.ends, @update] microbatches [0, 0, 0, 0]
    ```
  }];
}

def AssignBuffersPass : Pass<"par-assign-buffers", "::mlir::ModuleOp"> {
  let summary = "gives every value of a program a buffer";
  let description = [{
    Expects: programs whose blocks hold launches, communication, loads and stores (after Kernels). Leaves: every result
    is stored to one buffer right after its op, and loaded from it for each use. A result of a kernel in place, or of a
    reduction, shares its operand's buffer; old bytes that are still needed are copied first (a load that is stored
    elsewhere is a copy). Kernels that only reshape a value, or take its first rows, become loads of its buffer under
    the new shape. If a kernel appends zeros to all rows, only the zeros are written. With `grow-state`, a buffer of
    state has room for appended zero rows, or for all rows of a value whose first rows are stored to it.
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
  let summary = "moves variables and residuals into host memory";
  let description = [{
    Expects: programs after -par-assign-buffers. Leaves: the attribute `host` on every buffer that the options select:
    the optimizer's states (`states`, or those of parameters named in `states-of`) with their masters, which are
    parameters sharded over one of `master-axes`; parameters (`parameters`, `parameters-of`), with the values that one
    block computes from them only and another reads; and residuals (`saved`). Values and residuals of fewer than 1,024
    elements stay. A residual that Recompute has chosen has `host` before, and is treated alike. A block that uses one
    copies it into a temporary buffer, and back if it has changed. A copy in
    precedes the op that first uses the copy before it, so it can run beside that op; a copy out follows the last use.
    A copy is dropped and copied in again if more than `far` ops with uses of other buffers are between two uses, so no
    copy stays through a block. Bundle gives these copies a queue for each direction.
    Fails: never on its own; the gate -par-verify-memory checks the outcome.

    ```
    par.buffer @m state of "m" : tensor<4xf32> {host}
    par.buffer @m.dev temp : tensor<4xf32>
    ```
  }];
  let options = [
    Option<"states", "states", "bool", "false", "the optimizer's states">,
    Option<"parameters", "parameters", "bool", "false", "all parameters">,
    Option<"saved", "saved", "bool", "false", "residuals that forward keeps for backward">,
    ListOption<"statesOf", "states-of", "std::string", "parameters whose states these are">,
    ListOption<"masterAxes", "master-axes", "std::string", "parameters sharded over these go with states">,
    ListOption<"parametersOf", "parameters-of", "std::string", "these parameters">,
    Option<"far", "far", "unsigned", "32",
           "maximum number of ops with uses of other buffers between two uses of one copy">];
}

def PackMemoryPass : Pass<"par-pack-memory", "::mlir::ModuleOp"> {
  let summary = "gives every buffer its offsets in the arena";
  let description = [{
    Expects: programs after -par-assign-buffers. Leaves: `at` on every buffer. States are first, one after the other.
    All other buffers are packed in one pool by the live ranges of their slots in the flattened entries; a slot sent to
    another stage stays alive until its next write. Host memory has its own arena: states, then temporary buffers, where
    entries share bytes.
    Fails: if a rank of a role needs more than `limit` bytes.

    ```
    par.buffer @act temp by microbatch depth 2 : tensor<4xf32> at [0, 256]
    ```
  }];
  let options = [
    Option<"limit", "limit", "int64_t", "0", "bytes a rank may use; 0: unlimited">,
    Option<"greedy", "greedy", "bool", "false", "pack without a search for a smaller pool">
  ];
}

def VerifyMemoryPass : Pass<"par-verify-memory", "::mlir::ModuleOp"> {
  let summary = "gate after Memory: every value has valid storage";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails at:
    - a buffer without offsets, or a buffer in host memory that the runtime writes;
    - a result that is not stored right after its op, or that is tied to an operand in another buffer;
    - an op other than a copy that accesses host memory;
    - a `par.done` of a value that was not last written by a collective with a queue, in its block or an earlier one.

    ```
    par.buffer @act temp : tensor<4xf32>    // no offsets: error
    ```
  }];
}

#endif
