#ifndef PAR_INTERFACES_DECOMPOSABLE_TD
#define PAR_INTERFACES_DECOMPOSABLE_TD

include "mlir/IR/OpBase.td"

def DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::par";
  let description = "A composite op's meaning in simpler ops; Differentiable and ShardingRule may fall back on it.";
  let methods = [
    InterfaceMethod<"Builds the decomposition and returns one value a result.",
      "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::OpBuilder &":$builder)>
  ];
}

#endif
