#ifndef PAR_INTERPRETER_PASSES_TD
#define PAR_INTERPRETER_PASSES_TD

include "mlir/Pass/PassBase.td"

def CheckPhasesPass : Pass<"par-check-phases", "::mlir::ModuleOp"> {
  let summary = "runs passes and holds what each leaves against what it got, on small random inputs";
  let description = [{
    Expects: steps of any form between Import and Schedule. Leaves: the module after `passes`, a comma-separated list of
    pass pipelines. Fails: where a step's outputs, gradient accumulators or written variables change by more than
    `tolerance` of the tensor's largest element.

    ```
    par-opt --par-check-phases='passes=par-slice-microbatches{microbatches=4},par-assign-stages' step.mlir
    ```
  }];
  let options = [
    Option<"passes", "passes", "std::string", "\"\"", "pass pipelines, each checked on its own">,
    Option<"seed", "seed", "uint64_t", "1", "of the random inputs">,
    Option<"tolerance", "tolerance", "double", "1e-9", "relative to the tensor's largest element">
  ];
}

def InterpretPass : Pass<"par-interpret", "::mlir::ModuleOp"> {
  let summary = "prints what every step gives on small random inputs";
  let description = [{
    Expects: steps of any form between Import and Schedule. Leaves: the module unchanged; prints outputs and written
    variables, one a line, up to eight elements each. Inputs are drawn by name from `seed`; constants make a test's
    inputs explicit. Fails: where interpretation does.

    ```
    eval output "loss" tensor<f32> 0.693147
    ```
  }];
  let options = [Option<"seed", "seed", "uint64_t", "1", "of the random inputs">];
}

#endif
