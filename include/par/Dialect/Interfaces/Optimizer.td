#ifndef PAR_INTERFACES_OPTIMIZER_TD
#define PAR_INTERFACES_OPTIMIZER_TD

include "mlir/IR/OpBase.td"

def OptimizerOpInterface : OpInterface<"OptimizerOpInterface"> {
  let cppNamespace = "::par";
  let description = [{
    The update of one parameter. Operands: the weight, the gradient, the states, the step number if `countsSteps`, the
    learning rate and optionally the rows that the gradient is of. Results: the new weight and the new states, in the
    same order. Settings are attributes, f64 or booleans, `weight_decay` among them; lib/Plan/Model/Optimizers.cpp has
    the plan's words for them. The plan's word for the optimizer is the op's name.
  }];
  let methods = [
    StaticInterfaceMethod<"The suffix of each state's variable after its parameter's name: `.m`.",
      "::llvm::ArrayRef<::llvm::StringRef>", "getStates">,
    StaticInterfaceMethod<"True if it takes the number of the step, a scalar that counts from 1.", "bool",
        "countsSteps">,
    StaticInterfaceMethod<"True if it updates matrices as users and checkpoints see them, in no shape of the graph.",
        "bool", "updatesMatrices", (ins), [{}], [{ return false; }]>
  ];
}

#endif
