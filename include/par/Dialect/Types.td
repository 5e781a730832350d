#ifndef PAR_DIALECT_TYPES_TD
#define PAR_DIALECT_TYPES_TD

include "par/Dialect/Attributes.td"

def Par_DistType : TypeDef<Par_Dialect, "Dist"> {
  let mnemonic = "dist";
  let summary = "a tensor of global shape that lives on one stage with a sharding";
  let description = [{
    The type of every step-level value from Split on. Between Split and Propagate the sharding is `?` (null).

    Example: `!par.dist<tensor<8x256xf32>, @s0, [{"dp"}, {"tp"} ], unreduced={"cp"}>`, `!par.dist<tensor<f32>, @s1, ?>`
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tensor, "::mlir::FlatSymbolRefAttr":$stage,
                        "::par::ShardingAttr":$sharding);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    DistType withSharding(::par::ShardingAttr sharding) const {
      return get(getContext(), getTensor(), getStage(), sharding);
    }
  }];
}

def Par_Value : AnyTypeOf<[Par_Tensor, Par_DistType], "a tensor, or a tensor on a stage">;

#endif
