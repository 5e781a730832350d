#ifndef PAR_PARTITION_PASSES_TD
#define PAR_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ScatterTransfersPass : Pass<"par-scatter-transfers", "::mlir::ModuleOp"> {
  let summary = "sends what ranks of a stage hold alike in parts, and gathers these after receipt";
  let description = [{
    Expects: shardings on every value (after Propagate). Leaves: in loops, a transfer between stages of equal meshes is
    of the value sharded over each axis that did not shard it, on the first dim that the axis divides, with a
    par.reshard before and after it. A value that is passed on further is not gathered in between.
    Fails: if no value can be sharded further, at the place of the plan that asks for it.

    ```
    %b = par.transfer %a
        : !par.dist<tensor<8x4xf32>, @s0, [{"dp"}, {} ]> to !par.dist<tensor<8x4xf32>, @s1, [{"dp"}, {} ]>
    ```
    becomes, with "dp" and "tp" of two ranks each,
    ```
    %0 = par.reshard %a
        : !par.dist<tensor<8x4xf32>, @s0, [{"dp"}, {} ]> to !par.dist<tensor<8x4xf32>, @s0, [{"dp", "tp"}, {} ]>
    %1 = par.transfer %0
        : !par.dist<tensor<8x4xf32>, @s0, [{"dp", "tp"}, {} ]> to !par.dist<tensor<8x4xf32>, @s1, [{"dp", "tp"}, {} ]>
    %b = par.reshard %1
        : !par.dist<tensor<8x4xf32>, @s1, [{"dp", "tp"}, {} ]> to !par.dist<tensor<8x4xf32>, @s1, [{"dp"}, {} ]>
    ```
  }];
  let options = [Option<"said", "said", "std::string", "\"\"",
                        "place of the plan (file:line:column) that asks for it">];
}

def NestTransfersPass : Pass<"par-nest-transfers", "::mlir::ModuleOp"> {
  let summary = "reshards transfers between meshes so that sender and receiver shards nest";
  let description = [{
    Expects: shardings on every value (after Propagate). Leaves: a par.reshard before each transfer between stages of
    different meshes whose shards do not nest (3 and 2 of 6 rows): the sender gathers until they do. If the receivers'
    shards are smaller and senders hold replicas, each sender first slices its part, without communication, so that all
    of them send.
    Fails: never; a sender that gathers everything nests.

    ```
    par.stage @s0 <"tp"=2> ranks [0, 1]
    par.stage @s1 <"dp"=2> ranks [2, 3]
    %b = par.transfer %a : !par.dist<tensor<8x4xf32>, @s0, [{}, {} ]> to !par.dist<tensor<8x4xf32>, @s1, [{"dp"}, {} ]>
    ```
    becomes
    ```
    %c = par.reshard %a : !par.dist<tensor<8x4xf32>, @s0, [{}, {} ]> to !par.dist<tensor<8x4xf32>, @s0, [{"tp"}, {} ]>
    %b = par.transfer %c
        : !par.dist<tensor<8x4xf32>, @s0, [{"tp"}, {} ]> to !par.dist<tensor<8x4xf32>, @s1, [{"dp"}, {} ]>
    ```
  }];
}

def PartitionFragmentsPass : Pass<"par-partition-fragments", "::mlir::ModuleOp"> {
  let summary = "turns fragments of global shapes into local ones with explicit communication";
  let description = [{
    Expects: shardings on every value (after Propagate). Leaves: `local` fragments on shard shapes; collectives between
    ops that need different shardings of a value, each change as the cheapest sequence of reduce-scatter, all-reduce,
    all-to-all, all-gather and slicing by the hardware file (see par/Solver/Reshard/ReshardPath.h), each over all axes
    that move in this way; padding masked with the neutral element before reductions; step-level reshards as runs of
    fragments of their own.
    Fails: if an op cannot be built on shards, or the hardware file is not found.

    ```
    %p = par.dot %g, %w2 contracting [1] x [0] : (tensor<4x128xf32>, tensor<128x10xf32>) -> tensor<4x10xf32>
    %z = par.all_reduce sum %p over ["tp"] : (tensor<4x10xf32>) -> tensor<4x10xf32>
    ```
  }];
  let options = [
    Option<"hardware", "hardware", "std::string", "\"cpu\"", "hardware file that costs are predicted from">,
    ListOption<"parameterAxes", "parameter-axes", "std::string",
               "axes that shard stored parameters: a table is gathered over them, not looked up in shards">];
}

def NarrowGradientsPass : Pass<"par-narrow-gradients", "::mlir::ModuleOp"> {
  let summary = "sums gradients over microbatches and over ranks in other formats than f32";
  let description = [{
    Expects: local fragments with explicit communication (after -par-partition-fragments), and loops whose labels name
    the results that are gradients. Leaves: collectives that sum a gradient, in a loop or after one, on operands of the
    format `reduce`; loops that accumulate gradients in the format `accumulate`. A sum after a loop stays in its format
    until the update widens it. Other sums, and gradients of other types than f32, stay as they are.
    Fails: on another format, if a fragment has two runs, or if a gradient is used for anything but updates.

    Example: with `reduce=bf16` the fragment after the loop
    ```
    %r = par.reduce_scatter sum %g dims [0] over ["dp"] : (tensor<8x8xf32>) -> tensor<4x8xf32>
    par.return %r : tensor<4x8xf32>
    ```
    becomes
    ```
    %0 = par.convert %g : tensor<8x8xf32> to tensor<8x8xbf16>
    %r = par.reduce_scatter sum %0 dims [0] over ["dp"] : (tensor<8x8xbf16>) -> tensor<4x8xbf16>
    par.return %r : tensor<4x8xbf16>
    ```
    and the update begins with `par.convert` of its argument.
  }];
  let options = [
    Option<"accumulate", "accumulate", "std::string", "\"f32\"", "f32 or bf16: gradients summed over microbatches">,
    Option<"reduce", "reduce", "std::string", "\"f32\"", "f32 or bf16: gradients summed over ranks">,
  ];
}

def NarrowActivationsPass : Pass<"par-narrow-activations", "::mlir::ModuleOp"> {
  let summary = "sends activations between ranks in the format that matmuls are computed in";
  let description = [{
    Expects: local fragments with explicit communication (after -par-partition-fragments), and loops whose labels name
    the results that are gradients. Leaves: in forward and backward fragments, sums over ranks of narrow matmuls'
    results (or of values widened from narrow ones) in the narrow format: each rank's part is rounded and the sum
    widened. Gathers and exchanges of widened values, and of values that all users round, are narrow too. The sum of
    several matmuls is rounded once. Sums of parameters' gradients, and of values computed in a wider format, stay as
    they are.
    Fails: never.

    Example:
    ```
    %d = par.dot %x, %w contracting [1] x [0] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
    %s = par.all_reduce sum %d over ["tp"] : (tensor<4x8xf32>) -> tensor<4x8xf32>
    ```
    becomes
    ```
    %d = par.dot %x, %w contracting [1] x [0] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %n = par.all_reduce sum %d over ["tp"] : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
    %s = par.convert %n : tensor<4x8xbf16> to tensor<4x8xf32>
    ```
  }];
}

def VerifyPartitionPass : Pass<"par-verify-partition", "::mlir::ModuleOp"> {
  let summary = "gate of Partition";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: at a fragment that is not local, an op that still carries a
    sharding, or a par.reshard in a step.

    ```
    par.fragment @f(...) attributes {stage = @s0, kind = #par.fragment_kind<forward>} { ... }    // not local: error
    ```
  }];
}

def VerifyInvariantsPass : Pass<"par-verify-invariants", "::mlir::ModuleOp"> {
  let summary = "gate: values that all microbatches share are gathered as often as the plan says";
  let description = [{
    Expects: local fragments with explicit communication. Leaves: it unchanged. Values are followed from reads of
    variables through runs and ops, except values that depend on data, a microbatch's index or a loop's result.
    Fails: with `gather-once`, if a fragment of a loop has an all_gather or all_to_all, over some of `parameter-axes`,
    of values that depend only on variables. Without it, if a loop uses one variable's elements that were gathered
    before it (as they are, converted or broadcast), or if one of its fragments gathers them and another takes the
    result, as a backward does from its forward. Values computed before a loop from several variables, or summed, may
    communicate there (-par-lift-invariants decides where that pays). An axis over which the plan itself shards a
    variable is not checked, since propagation carries it to others.

    With parameter-axes=dp gather-once=true
    ```
    par.step @train(%x: !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {} ]>) -> ... {
      %w = par.read @w : !par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {} ]>
      %l = par.loop 4 (%x) ... {
        %y = par.run @forward(%w, %xi) : ...    // in which: %1 = par.all_gather %w dims [0] over ["dp"]: error
    ```
  }];
  let options = [
    ListOption<"parameterAxes", "parameter-axes", "std::string", "axes that shard stored parameters">,
    Option<"gatherOnce", "gather-once", "bool", "false",
           "sharded parameters are gathered once a step, not for each use">,
  ];
}

#endif
