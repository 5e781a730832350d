#ifndef PAR_INTERFACES_LOWERABLE_TD
#define PAR_INTERFACES_LOWERABLE_TD

include "mlir/IR/OpBase.td"

def LowerableOpInterface : OpInterface<"LowerableOpInterface"> {
  let cppNamespace = "::par";
  let description = "How a generated kernel computes an op: linalg, tensor, arith and math ops on tensors.";
  let methods = [
    InterfaceMethod<"Builds the lowered op on lowered operands (i1 as i8-free i1 tensors); one value a result.",
      "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "lower",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands)>
  ];
}

#endif
