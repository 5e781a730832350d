#ifndef PAR_INTERFACES_DIFFERENTIABLE_TD
#define PAR_INTERFACES_DIFFERENTIABLE_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::par";
  let description = "An op's part of reverse mode.";
  let methods = [
    InterfaceMethod<[{
      Builds the cotangents of the operands. `cotangents` has one entry a result, null where nothing flows back.
      Returns one entry an operand, null where there is none (integers, or no dependence). Sums over several uses are
      the caller's work.
    }], "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "differentiate",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ArrayRef<::mlir::Value>":$cotangents)>
  ];
}

#endif
