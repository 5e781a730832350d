#ifndef PAR_INTERFACES_TIMED_TD
#define PAR_INTERFACES_TIMED_TD

include "mlir/IR/OpBase.td"

def TimedOpInterface : OpInterface<"TimedOpInterface"> {
  let cppNamespace = "::par";
  let description = "The time of an op that is a library call of its own, which depends on more than operations and bytes.";
  let methods = [
    InterfaceMethod<"The time of one execution on a machine.", "::par::Cost", "getTime",
      (ins "const ::par::CostTable &":$costs)>
  ];
}

#endif
