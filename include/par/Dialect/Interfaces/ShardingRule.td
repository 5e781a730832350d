#ifndef PAR_INTERFACES_SHARDINGRULE_TD
#define PAR_INTERFACES_SHARDINGRULE_TD

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::par";
  let description = [{
    Says how the dims of an op's operands and results correspond, as data (par/Dialect/Interfaces/ShardingRule.h).
    Slicing in time, propagation, partition, padding and cost read that one datum.
  }];
  let methods = [
    InterfaceMethod<"The rule, for the op's global types.", "::par::ShardingRule", "getShardingRule", (ins)>,
    InterfaceMethod<[{
      Builds the op on shards, at the builder's place: `operands` are local values; `localTypes` the results' local
      types. Default: a clone with other types. Ops whose local form differs (shift and mask of an indexed factor,
      offsets of an iota, attributes that hold shapes) say how.
    }], "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "localize",
    (ins "::mlir::OpBuilder &":$builder, "const ::par::LocalizeContext &":$context), "", [{
      return ::par::localizeByCloning($_op.getOperation(), builder, context);
    }]>
  ];
}

#endif
