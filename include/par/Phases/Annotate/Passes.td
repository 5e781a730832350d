#ifndef PAR_ANNOTATE_PASSES_TD
#define PAR_ANNOTATE_PASSES_TD

include "mlir/Pass/PassBase.td"

def CreateStagesPass : Pass<"par-create-stages", "::mlir::ModuleOp"> {
  let summary = "one par.stage for every stage of the plan";
  let description = [{
    Expects: Import's module.
    Leaves: stages @s0, @s1, ... along the plan's `pipeline.over`, each with the mesh of the other axes, refined to
    prime sizes, and its ranks in the mesh's order. Without a pipeline one stage has all ranks.
    Fails: if the plan cannot be read, or if the module has stages already.

    Example: `mesh: {pp: 2, dp: 2, tp: 4}` gives
    ```
    par.stage @s0 <"dp"=2, "tp.0"=2, "tp.1"=2> ranks [0, 1, 2, 3, 4, 5, 6, 7]
    par.stage @s1 <"dp"=2, "tp.0"=2, "tp.1"=2> ranks [8, 9, 10, 11, 12, 13, 14, 15]
    ```
  }];
  let options = [ListOption<"files", "plan", "std::string", "plan files, left to right">];
}

def AnnotateVariablesPass : Pass<"par-annotate-variables", "::mlir::ModuleOp"> {
  let summary = "the plan's shardings and initialisations of parameters";
  let description = [{
    Expects: Import's module.
    Leaves: every parameter that rules of `shard` match has a sharding, later rules over earlier ones dim by dim, other
    dims open; parameters that are not trained are `frozen`; `train.init` is their `init`. A dim that
    Import unfolded into parts is sharded inside each part.
    Fails: at the rule, if a pattern matches nothing, an axis shards two dims, or `blocks` differs from the graph's
    parts.

    Example: `shard: {attn.c_attn.weight: {1: tp, blocks: 3}}` makes of `stored tensor<64x192xf32>`
    ```
    par.variable @h.0.attn.c_attn.weight parameter : tensor<64x3x64xf32> stored tensor<64x192xf32>
      sharding <[{?}, {?}, {"tp", ?} ]>
    ```
  }];
  let options = [ListOption<"files", "plan", "std::string", "plan files, left to right">];
}

def ConstrainValuesPass : Pass<"par-constrain-values", "::mlir::ModuleOp"> {
  let summary = "shardings of values as par.constrain";
  let description = [{
    Expects: Import's module.
    Leaves: a `par.constrain` after every value that a rule of `shard` names: out(M) are the values computed inside M
    and used outside, in(M) those computed outside and used inside. Its gradient is the same constraint.
    Fails: if the value lacks that dim, or the input that index.

    Example: `out(ln_1): {1: tp}` adds to the output %0 of the module ln_1
    ```
    %1 = par.constrain %0 <[{?}, {"tp", ?}, {?} ]> : tensor<8x32x64xf32>
    ```
  }];
  let options = [ListOption<"files", "plan", "std::string", "plan files, left to right">];
}

def CutStagesPass : Pass<"par-cut-stages", "::mlir::ModuleOp"> {
  let summary = "says for every forward op on which stage it runs";
  let description = [{
    Expects: par.stage ops and Import's step.
    Leaves: a stage on every tensor op that a parameter, trained or frozen, flows into, following `pipeline.cuts`: from
    the modules or nodes that begin stages, from modules dealt out evenly or by counts, or, with `auto`, from the solver
    of the stage_cut problem on the ops' costs, which cuts the first step only. An op is on the stage after the last cut
    that it depends on; one that depends only on parameters is on its first user's stage. Ops that depend only on data
    have no stage: Split puts them on the stages of their users.
    Fails: if a cut matches no module or node or several, a stage would be empty, or a stage does not fit its memory.

    Example: `pipeline: {cuts: [h.2]}` makes the first op of module h.2
    ```
    %1 = par.layer_norm %0 ... {stage = 1 : i64}
    ```
  }];
  let options = [ListOption<"files", "plan", "std::string", "plan files, left to right">];
}

def AlignStagesPass : Pass<"par-align-stages", "::mlir::ModuleOp"> {
  let summary = "places the ops of other entries as the first one's";
  let description = [{
    Expects: the first step after -par-cut-stages; other steps, imports of the same model, with stages or without.
    Leaves: the ops of steps without stages on those that the same nodes have in the first step, or later where they
    depend on such ops: entries share their variables. Steps that the plan's names have cut stay as they are.

    Example: `h.1/MatMul` is on stage 1 of @predict
    ```
    %1 = par.dot %0, %w                     // of h.1/MatMul, in @prefill
    ```
    becomes
    ```
    %1 = par.dot %0, %w {stage = 1 : i64}
    ```
  }];
}

def VerifyAnnotatePass : Pass<"par-verify-annotate", "::mlir::ModuleOp"> {
  let summary = "gate of Annotate";
  let description = [{
    Expects: the module after Annotate.
    Leaves: it unchanged.
    Fails: unless there are stages, every stage that an op names exists, every stage but an only one has an op that a
    parameter flows into, and every sharding names axes of some stage's mesh, none twice.

    Example: `par.negate %x {stage = 2 : i64}` is refused with two stages.
  }];
}

#endif
