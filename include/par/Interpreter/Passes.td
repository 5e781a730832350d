#ifndef PAR_INTERPRETER_PASSES_TD
#define PAR_INTERPRETER_PASSES_TD

include "mlir/Pass/PassBase.td"

def CheckPhasesPass : Pass<"par-check-phases", "::mlir::ModuleOp"> {
  let summary = "runs passes and holds what each leaves against what it got, on small random inputs";
  let description = [{
    Expects: steps of any form between Import and Recompute, or programs, of any form between Schedule and Memory.
    Leaves: the module after `passes`, a comma-separated list of pass pipelines. Fails: where an entry's outputs,
    gradient accumulators or written variables change by more than `tolerance` of the tensor's largest element, from
    pass to pass or from what the module of the file `against` gives, and where there is neither a step nor an entry.

    ```
    par-opt --par-check-phases='passes=par-slice-microbatches{microbatches=4},par-assign-stages' step.mlir
    par-opt --par-check-phases=against=step.mlir programs.mlir
    ```
  }];
  let options = [
    Option<"passes", "passes", "std::string", "\"\"", "pass pipelines, each checked on its own">,
    Option<"against", "against", "std::string", "\"\"", "file of a module that computes the same">,
    Option<"seed", "seed", "uint64_t", "1", "of the random inputs">,
    Option<"tolerance", "tolerance", "double", "1e-9", "relative to the tensor's largest element">
  ];
}

def InterpretPass : Pass<"par-interpret", "::mlir::ModuleOp"> {
  let summary = "prints what every step gives on small random inputs";
  let description = [{
    Expects: steps of any form between Import and Recompute, or programs. Leaves: the module unchanged; prints outputs,
    gradient accumulators and written variables, one a line, up to eight elements each. Inputs are drawn by name from
    `seed`; constants make a test's inputs explicit. Fails: where interpretation does.

    ```
    eval output "loss" tensor<f32> 0.693147
    ```

    `values` names safetensors files instead: variables start from them (else from their own value, or zeros), and the
    k-th of `steps` calls of an entry takes the k-th part of each input's array. So a training run can be done in f64,
    as an oracle for clipping or for labels that are ignored. Outputs are then printed call by call with all their
    digits, and for the variables written by the last call their Euclidean norms.

    ```
    par-compile model.onnx plan.yaml --stop-after=train \
      | par-opt --par-interpret='values=start.safetensors,data.safetensors steps=10'
    train call 0 output "loss" tensor<f32> 6.2392988204956055
    train norm "wte.weight" 5.1244282722473145
    ```
  }];
  let options = [
    Option<"seed", "seed", "uint64_t", "1", "of the random inputs">,
    ListOption<"values", "values", "std::string", "safetensors files with start values and inputs">,
    Option<"steps", "steps", "int64_t", "1", "calls of each entry, with `values`">
  ];
}

#endif
