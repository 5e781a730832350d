#ifndef PAR_INTERFACES_INTERPRETABLE_TD
#define PAR_INTERFACES_INTERPRETABLE_TD

include "mlir/IR/OpBase.td"

def InterpretableOpInterface : OpInterface<"InterpretableOpInterface"> {
  let cppNamespace = "::par";
  let description = "An op's meaning on numbers: the oracle. Floats are f64 whatever the type, integers i64.";
  let methods = [
    InterfaceMethod<"Results of a tensor op on one rank.",
      "::mlir::FailureOr<::llvm::SmallVector<::par::interp::Tensor>>", "interpret",
      (ins "::llvm::ArrayRef<::par::interp::Tensor>":$operands)>
  ];
}

def InterpretableCollectiveInterface : OpInterface<"InterpretableCollectiveInterface"> {
  let cppNamespace = "::par";
  let description = "Meaning of an op that needs all ranks of a stage (collectives, axis_index).";
  let methods = [
    InterfaceMethod<"operands[rank][i]; returns results[rank][i]; `mesh` is the stage's.",
      "::mlir::FailureOr<::llvm::SmallVector<::llvm::SmallVector<::par::interp::Tensor>>>", "interpretRanks",
      (ins "::llvm::ArrayRef<::llvm::SmallVector<::par::interp::Tensor>>":$operands, "::par::MeshAttr":$mesh)>
  ];
}

#endif
