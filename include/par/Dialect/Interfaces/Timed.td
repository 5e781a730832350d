#ifndef PAR_INTERFACES_TIMED_TD
#define PAR_INTERFACES_TIMED_TD

include "mlir/IR/OpBase.td"

def TimedOpInterface : OpInterface<"TimedOpInterface"> {
  let cppNamespace = "::par";
  let description = [{The time of an op that depends on more than operations and bytes: a library call of its own, or
    a collective.}];
  let methods = [
    InterfaceMethod<"The time of one execution on a machine.", "::par::Cost", "getTime",
      (ins "const ::par::CostTable &":$costs)>
  ];
}

#endif
