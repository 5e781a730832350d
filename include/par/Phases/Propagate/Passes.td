#ifndef PAR_PROPAGATE_PASSES_TD
#define PAR_PROPAGATE_PASSES_TD

include "mlir/Pass/PassBase.td"

def PropagateShardingsPass : Pass<"par-propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "gives every value one sharding";
  let description = [{
    Expects: steps and fragments after Split; shardings of some variables and par.constrain ops. Leaves: a sharding on
    every step value's type and every fragment value; `at` on every variable; what the plan left open is closed. Sums
    that a loop accumulates stay unreduced over the axes that cut their factors, and are reduced behind the loop by a
    par.reshard; summands that are sums over the same axes are added before they are reduced. What a par.constrain lets
    be a sum of parts stays one up to its uses. Other sums go through ops that are linear in them, from forward into
    backward too, to values that are smaller or cut over the same axes, where reducing those moves at most three
    quarters of the bytes. Inputs are cut along their batch over `batch-axes`, which goes first; then what the plan
    says, by priorities, lowest first (1 unless said; 0 is the batch's, 2 that of what is spread); each op's rule
    carries axes on from dim to dim until nothing changes. Last, parameters, accumulated gradients and states are spread
    over further axes, each on one dim; where these differ, a par.reshard stands between them as a border that no axis
    crosses: read to update, accumulated to update, update to write, and read to use where that is once a step. Then
    none of `parameter-axes` comes to what a loop makes of variables alone either, nor to buffers, unless the plan lays
    them so. What is said of one parameter's gradient or states goes before that: dims without axes follow the parameter
    unless the rule is closed. States are said before, gradients behind all propagation: neither changes how else is
    computed.
    Fails: if an axis is in no stage's mesh.

    ```
    par.variable @w parameter : tensor<64x256xf32> sharding <[{}, {"tp"} ]>
    ```
    gives the product with @w the sharding `[{"dp"}, {"tp"} ]` where its left operand has `[{"dp"}, {} ]`. With
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
    ListOption<"batchAxes", "batch-axes", "std::string", "axes that cut the batch of every input">,
    ListOption<"parameterAxes", "parameter-axes", "std::string", "axes that spread parameters where they are stored">,
    ListOption<"gradientAxes", "gradient-axes", "std::string", "axes that spread accumulated gradients">,
    ListOption<"stateAxes", "state-axes", "std::string", "axes that spread states and updates">,
    Option<"minSize", "min-size", "int64_t", "0", "parameters of fewer elements are not spread">,
    Option<"gatherOnce", "gather-once", "bool", "false",
           "spread parameters are gathered once a step, not for each use">,
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
    factor. As often as one was taken apart, all shardings are propagated anew, which may cut the factor of another.
    Fails: if such an op has no decomposition.

    ```
    %t, %lse = par.cross_entropy %z, %y ignore -100 : ...    // with the classes of %z over "tp"
    ```
    becomes a maximum, a sum of exponentials and a take, each of which may be cut.
  }];
  let options = [
    ListOption<"batchAxes", "batch-axes", "std::string", "axes that cut the batch of every input">,
    ListOption<"parameterAxes", "parameter-axes", "std::string", "axes that spread parameters where they are stored">,
    ListOption<"gradientAxes", "gradient-axes", "std::string", "axes that spread accumulated gradients">,
    ListOption<"stateAxes", "state-axes", "std::string", "axes that spread states and updates">,
    Option<"minSize", "min-size", "int64_t", "0", "parameters of fewer elements are not spread">,
    Option<"gatherOnce", "gather-once", "bool", "false",
           "spread parameters are gathered once a step, not for each use">,
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
    Expects: a sharding on every value. Where stages have meshes of their own, each has the axes of all until here,
    those that it lacks of size 1, so that values that must lie alike on several stages have one sharding. Leaves: in
    meshes, and in what lies on a stage, the axes alone of which that stage has more than one rank; no reshard between
    what is then alike.
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
  let summary = "gate: what must be there after Propagate";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: where a step value, a fragment's argument or an op's result has no
    sharding or an open one, or where an `expand` factor is sharded.

    ```
    %0 = par.read @w : !par.dist<tensor<4xf32>, @s0, ?>    // error
    ```
  }];
}

#endif
