#ifndef PAR_INTERFACES_OPTIMIZER_TD
#define PAR_INTERFACES_OPTIMIZER_TD

include "mlir/IR/OpBase.td"

def OptimizerOpInterface : OpInterface<"OptimizerOpInterface"> {
  let cppNamespace = "::par";
  let description = [{
    The update of one parameter. Its operands are the weight, the gradient, the states, the number of the step where it
    is counted, the learning rate, and perhaps the rows that the gradient is of; its results are the new weight and the
    new states, in the same order. Its settings are attributes, f64 or booleans, of which `weight_decay` is one;
    lib/Plan/Model/Optimizers.cpp has the plan's words for them. The plan's word for the optimizer is the op's name.
  }];
  let methods = [
    StaticInterfaceMethod<"What each state's variable is called behind its parameter's name: `.m`.",
      "::llvm::ArrayRef<::llvm::StringRef>", "getStates">,
    StaticInterfaceMethod<"True if it takes the number of the step, a scalar that counts from 1.", "bool",
        "countsSteps">
  ];
}

#endif
