#ifndef PAR_INTERFACES_COST_TD
#define PAR_INTERFACES_COST_TD

include "mlir/IR/OpBase.td"

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::par";
  let description = "The cost of an op on its shapes. The bytes that it moves follow from operands and results.";
  let methods = [
    InterfaceMethod<"Floating-point operations of one execution.", "int64_t", "getFlops", (ins)>,
    InterfaceMethod<"True if it fuses into a neighbour's loop at no cost of memory traffic.", "bool", "isFusable",
      (ins), "", "return true;">
  ];
}

#endif
