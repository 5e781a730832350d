#ifndef PAR_INTERFACES_COLLECTIVE_TD
#define PAR_INTERFACES_COLLECTIVE_TD

include "mlir/IR/OpBase.td"

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::par";
  let description = [{
    An op that the ranks of a group run together. Phases ask by this interface whether an op communicates, over which
    axes, and on which queue.
  }];
  let methods = [
    InterfaceMethod<"One value per member of a bucket.", "::mlir::Operation::operand_range", "getInputs">,
    InterfaceMethod<"Axes of the stage's mesh, major first.", "::mlir::ArrayAttr", "getAxes">,
    InterfaceMethod<"The queue on which it runs beside compute; empty: compute waits for it.", "::llvm::StringRef",
      "getQueue">,
    InterfaceMethod<"Lets it start on a queue; par.done ends it.", "void", "setQueue",
      (ins "::llvm::StringRef":$queue)>,
    InterfaceMethod<"True for one level of a collective over several hosts, without a queue.", "bool", "getLevel">,
    InterfaceMethod<"Makes it such a level.", "void", "setLevel", (ins "bool":$level)>,
    InterfaceMethod<"True if it is one collective per block of dim 0, in a group.", "bool", "getByBlocks">,
    InterfaceMethod<"Makes it one collective per block of dim 0.", "void", "setByBlocks", (ins "bool":$blocks)>
  ];
}

#endif
