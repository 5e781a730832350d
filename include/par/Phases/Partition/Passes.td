#ifndef PAR_PARTITION_PASSES_TD
#define PAR_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def NestTransfersPass : Pass<"par-nest-transfers", "::mlir::ModuleOp"> {
  let summary = "lays what crosses to a stage with another mesh so that its shards there and here make up each other";
  let description = [{
    Expects: shardings on every value (after Propagate). Leaves: in front of a transfer between stages of different
    meshes a par.reshard where shards of the one side neither consist of those of the other nor are parts of them (3
    rows and 2 of 6): the sender gathers then until they are. Where the receivers' shards are smaller, and senders
    repeat one another, each sender takes its part first, which sends nothing, so that all send.
    Fails: never; in the end the sender has all.

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
    Expects: shardings on every value (after Propagate). Leaves: `local` fragments on shard shapes; collectives where a
    value is needed otherwise than it is made, each change as the cheapest sequence of reduce-scatter, all-reduce,
    all-to-all, all-gather and slicing by the hardware file (see par/Solver/Reshard/ReshardPath.h), each over all axes
    that move so; padding masked with the neutral element by what reduces it; step-level reshards as runs of fragments
    of their own.
    Fails: where an op cannot be built on shards, or there is no such hardware file.

    ```
    %p = par.dot %g, %w2 contracting [1] x [0] : (tensor<4x128xf32>, tensor<128x10xf32>) -> tensor<4x10xf32>
    %z = par.all_reduce sum %p over ["tp"] : (tensor<4x10xf32>) -> tensor<4x10xf32>
    ```
  }];
  let options = [Option<"hardware", "hardware", "std::string", "\"cpu\"",
      "hardware file that costs are predicted from">];
}

def NarrowGradientsPass : Pass<"par-narrow-gradients", "::mlir::ModuleOp"> {
  let summary = "sums gradients over microbatches and over ranks in other formats than f32";
  let description = [{
    Expects: local fragments with explicit communication (behind -par-partition-fragments), and loops whose labels say
    which results are gradients. Leaves: collectives that sum a gradient, in a loop or behind one, on operands of the
    format `reduce`; loops that accumulate gradients in the format `accumulate`. What is summed behind a loop stays in
    its format until the update widens it. Sums of anything else, and gradients of other types than f32, stay as they
    are.
    Fails: on another format, where a fragment is run at two places, or a gradient is used for anything but updates.

    Example: with `reduce=bf16` the fragment behind the loop
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
  let summary = "sends activations between ranks in the format that products are computed in";
  let description = [{
    Expects: local fragments with explicit communication (behind -par-partition-fragments), and loops whose labels say
    which results are gradients. Leaves: in forward and backward fragments, sums over ranks of what products of narrow
    numbers gave, or of what was widened from such, in the narrow format, each rank's part rounded and the sum widened;
    so are gathers and exchanges of what was widened, and whatever moves elements that all readers round. A rounded sum
    of several products is rounded once. Sums of parameters' gradients, and of what was computed in a wider format, stay
    as they are. Fails: never.

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
  let summary = "gate: what must hold after Partition";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: at a fragment that is not local, an op that still carries a
    sharding, or a par.reshard in a step.

    ```
    par.fragment @f(...) attributes {stage = @s0, kind = #par.fragment_kind<forward>} { ... }    // not local: error
    ```
  }];
}

def VerifyInvariantsPass : Pass<"par-verify-invariants", "::mlir::ModuleOp"> {
  let summary = "gate: what no microbatch changes is gathered as often as the plan says";
  let description = [{
    Expects: local fragments with explicit communication. Leaves: it unchanged. Values are followed from reads of
    variables through runs and ops; what data, a microbatch's number or a loop's result flows into is not followed.
    Fails: with `gather-once`, where an all_gather or all_to_all over some of `parameter-axes` of what is made of
    variables alone stands in a fragment that a loop runs; without it, where one before a loop joins one variable's
    elements, as they are, converted or spread, and the loop uses what it gives, or one in a fragment of the loop, and
    another fragment takes it, as a backward of its forward. What is computed before a loop of several variables, or
    summed (-par-lift-invariants says where that pays), may communicate there. An axis over which the plan itself lays a
    variable is not looked at: it comes to others from there, too.

    With parameter-axes=dp gather-once=true
    ```
    par.step @train(%x: !par.dist<tensor<4x2x4xf32>, @s0, [{}, {"dp"}, {} ]>) -> ... {
      %w = par.read @w : !par.dist<tensor<4x4xf32>, @s0, [{"dp"}, {} ]>
      %l = par.loop 4 (%x) ... {
        %y = par.run @forward(%w, %xi) : ...    // in which: %1 = par.all_gather %w dims [0] over ["dp"]: error
    ```
  }];
  let options = [
    ListOption<"parameterAxes", "parameter-axes", "std::string", "axes that spread parameters where they are stored">,
    Option<"gatherOnce", "gather-once", "bool", "false",
           "spread parameters are gathered once a step, not for each use">,
  ];
}

#endif
