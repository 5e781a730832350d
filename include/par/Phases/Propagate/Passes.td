#ifndef PAR_PROPAGATE_PASSES_TD
#define PAR_PROPAGATE_PASSES_TD

include "mlir/Pass/PassBase.td"

def PropagateShardingsPass : Pass<"par-propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "gives every value one sharding";
  let description = [{
    Expects: steps and fragments after Split; shardings of some variables and par.constrain ops. Leaves: a sharding on
    every step value's type and every fragment value; `at` on every variable; dims that the plan left open are closed.

    Order: first, inputs are sharded along their batch over `batch-axes`. Then follow the plan's rules by priority,
    lowest first (default 1; 0 is the batch's, 2 that of the further axes below). Each op's rule propagates axes from
    dim to dim until nothing changes. Last, parameters, accumulated gradients and states are sharded over further axes,
    each on one dim. If these layouts differ, a par.reshard between them is a border that no axis crosses: read to
    update, accumulated to update, update to write, and read to use if parameters are gathered once a step. In that case
    buffers, and values of a loop that depend only on variables, get none of `parameter-axes` either, unless the plan
    shards them so. Rules for one parameter's gradient or states override this: dims without axes follow the parameter
    unless the rule is closed. Rules for states apply before, those for gradients after all propagation, so that neither
    changes how other values are computed.

    Partial sums: sums that a loop accumulates stay unreduced over the axes that shard their factors; a par.reshard
    after the loop reduces them. Summands that are partial sums over the same axes are added before they are reduced. A
    value that a par.constrain allows to be a partial sum stays one up to its uses. Other partial sums pass through ops
    that are linear in them, from forward into backward too, to values that are smaller or sharded over the same axes,
    if reducing those moves at most three quarters of the bytes.
    Fails: if an axis is in no stage's mesh.

    ```
    par.variable @w parameter : tensor<64x256xf32> sharding <[{}, {"tp"} ]>
    ```
    gives the matmul with @w the sharding `[{"dp"}, {"tp"} ]` if its left operand has `[{"dp"}, {} ]`. With
    `state-axes=dp`
    ```
    %r = par.reshard %g : [{}, {"tp"} ], unreduced={"dp"} to [{"dp"}, {"tp"} ]       // the gradient's reduction
    %u = par.reshard %w : [{}, {"tp"} ] to [{"dp"}, {"tp"} ]
    %n = par.run @update(%u, %r, ...)
    %v = par.reshard %n : [{"dp"}, {"tp"} ] to [{}, {"tp"} ]
    par.write %v to @w
    ```
  }];
  let options = [
    ListOption<"batchAxes", "batch-axes", "std::string", "axes that shard the batch of every input">,
    ListOption<"parameterAxes", "parameter-axes", "std::string", "axes that shard stored parameters">,
    ListOption<"gradientAxes", "gradient-axes", "std::string", "axes that shard accumulated gradients">,
    ListOption<"stateAxes", "state-axes", "std::string", "axes that shard states and updates">,
    Option<"minSize", "min-size", "int64_t", "0", "parameters of fewer elements are not sharded over these">,
    Option<"gatherOnce", "gather-once", "bool", "false",
           "sharded parameters are gathered once a step, not for each use">,
    Option<"masters", "masters", "bool", "false",
           "parameters that steps read only rounded are stored as their states are, and gathered rounded once a step">,
    ListOption<"gradientRules", "gradient-rules", "std::string",
               "accumulated gradients: NAME=DIM:axis+axis;...;partial:axis;closed">,
    ListOption<"stateRules", "state-rules", "std::string",
               "states and updates: NAME=DIM:axis+axis;...;priority:N;closed">,
    ListOption<"priorities", "priorities", "std::string",
               "of parameters' shardings: NAME=N; lower goes first, 1 unless said">,
  ];
}

def ExpandCompositesPass : Pass<"par-expand-composites", "::mlir::ModuleOp"> {
  let summary = "takes composites apart whose sharded factor is not plainly parallel";
  let description = [{
    Expects: shardings on every value. Leaves: shardings on every value, and no op whose rule has a sharded `expand`
    factor. Whenever one was decomposed, all shardings are propagated again, which may shard the factor of another.
    Fails: if such an op has no decomposition.

    ```
    %t, %lse = par.cross_entropy %z, %y ignore -100 : ...    // with the classes of %z over "tp"
    ```
    becomes a maximum, a sum of exponentials and a take, each of which may be sharded.
  }];
  let options = [
    ListOption<"batchAxes", "batch-axes", "std::string", "axes that shard the batch of every input">,
    ListOption<"parameterAxes", "parameter-axes", "std::string", "axes that shard stored parameters">,
    ListOption<"gradientAxes", "gradient-axes", "std::string", "axes that shard accumulated gradients">,
    ListOption<"stateAxes", "state-axes", "std::string", "axes that shard states and updates">,
    Option<"minSize", "min-size", "int64_t", "0", "parameters of fewer elements are not sharded over these">,
    Option<"gatherOnce", "gather-once", "bool", "false",
           "sharded parameters are gathered once a step, not for each use">,
    Option<"masters", "masters", "bool", "false",
           "parameters that steps read only rounded are stored as their states are, and gathered rounded once a step">,
    ListOption<"gradientRules", "gradient-rules", "std::string",
               "accumulated gradients: NAME=DIM:axis+axis;...;partial:axis;closed">,
    ListOption<"stateRules", "state-rules", "std::string",
               "states and updates: NAME=DIM:axis+axis;...;priority:N;closed">,
    ListOption<"priorities", "priorities", "std::string",
               "of parameters' shardings: NAME=N; lower goes first, 1 unless said">,
  ];
}

def DropAbsentAxesPass : Pass<"par-drop-absent-axes", "::mlir::ModuleOp"> {
  let summary = "an axis of size 1 on a stage is no axis there";
  let description = [{
    Expects: a sharding on every value. If stages have meshes of their own, each still has the axes of all stages, those
    that it lacks with size 1, so that one sharding is valid on several stages. Leaves: in meshes and shardings of a
    stage, only the axes along which that stage has more than one rank; no reshard between shardings that are then
    equal.
    Fails: never.

    ```
    par.stage @s1 <"dp"=1> ranks [2]           // beside @s0 <"dp"=2> ranks [0, 1]
    %b = par.transfer %a
        : !par.dist<tensor<8x4xf32>, @s0, [{"dp"}, {} ]> to !par.dist<tensor<8x4xf32>, @s1, [{"dp"}, {} ]>
    ```
    becomes
    ```
    par.stage @s1 <> ranks [2]
    %b = par.transfer %a : !par.dist<tensor<8x4xf32>, @s0, [{"dp"}, {} ]> to !par.dist<tensor<8x4xf32>, @s1, [{}, {} ]>
    ```
  }];
}

def VerifyPropagatePass : Pass<"par-verify-propagate", "::mlir::ModuleOp"> {
  let summary = "gate of Propagate";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: if a step value, a fragment's argument or an op's result has no
    sharding or an open one, or if an `expand` factor is sharded.

    ```
    %0 = par.read @w : !par.dist<tensor<4xf32>, @s0, ?>    // error
    ```
  }];
}

#endif
