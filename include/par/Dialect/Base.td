#ifndef PAR_DIALECT_BASE_TD
#define PAR_DIALECT_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/FunctionInterfaces.td"

def Par_Dialect : Dialect {
  let name = "par";
  let cppNamespace = "::par";
  let summary = "training steps, their sharding, and the programs that run them";
  let description = [{
    Three levels. A *step* (`par.step`) is one entry of a model: reads and writes of variables around tensor ops,
    and, from Split on, a loop over microbatches that runs fragments placed on stages. A *fragment*
    (`par.fragment`) is the isolated, pure and anonymous part that one stage runs at once. A *program*
    (`par.program`) is executed by the ranks of one role: blocks, buffers and an order.

    Tensor ops are a closed set with value semantics. The facts of an op (sharding rule, gradient, interpretation,
    lowering, cost) are defined beside it as interfaces of par/Dialect/Interfaces; passes ask through them.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  // Attributes of steps, entries and loops that a later phase reads. verifyOperationAttribute checks where each may
  // stand; lib/Dialect/DiscardableAttributes.cpp says which phase gives and which reads it.
  let hasOperationAttrVerify = 1;
  let discardableAttrs = (ins
    "::mlir::IntegerAttr":$calls,
    "::mlir::DenseI64ArrayAttr":$versions,
    "::mlir::DictionaryAttr":$batch_of_one,
    "::mlir::DictionaryAttr":$output_batch_dims,
    "::mlir::ArrayAttr":$unaccumulated,
    "::mlir::ArrayAttr":$unsigned,
    "::mlir::UnitAttr":$counts_earlier,
    "::mlir::UnitAttr":$key);
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

class Par_Op<string mnemonic, list<Trait> traits = []> : Op<Par_Dialect, mnemonic, traits>;

// Every tensor has a static shape; elements are floats, signless integers, or i1 as booleans.
def Par_Tensor : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;
def Par_FloatTensor : StaticShapeTensorOf<[AnyFloat]>;
def Par_IntTensor : StaticShapeTensorOf<[AnySignlessInteger]>;
def Par_BoolTensor : StaticShapeTensorOf<[I1]>;
def Par_NumberTensor : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;

// One sharding a result; empty before Propagate.
def Par_ShardingsAttr : TypedArrayAttrBase<AnyAttr, "shardings of the results"> {
  let returnType = "::llvm::ArrayRef<::mlir::Attribute>";
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = "$_builder.getArrayAttr($0)";
}

// A pure tensor op with two inherent attributes that phases preserve. `stage` is the hint that Annotate gives to
// forward ops and Split consumes (-1: none); `shardings` (one per result) lives from Propagate to Partition and is
// read only by par::getSharding(Value).
class Par_TensorOp<string mnemonic, dag ins_, dag outs_, list<Trait> traits = []>
    : Par_Op<mnemonic, !listconcat(traits, [Pure])> {
  let arguments = !con(ins_, (ins DefaultValuedAttr<I64Attr, "-1">:$stage,
                                  DefaultValuedAttr<Par_ShardingsAttr, "{}">:$shardings));
  let results = outs_;
}

#endif
