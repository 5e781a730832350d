#ifndef PAR_DIALECT_ATTRIBUTES_TD
#define PAR_DIALECT_ATTRIBUTES_TD

include "par/Dialect/Base.td"

class Par_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<Par_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Par_MeshAttr : Par_Attr<"Mesh", "mesh"> {
  let summary = "named axes with sizes, outermost first";
  let description = [{
    The mesh of a stage. Axes are refined to prime factors by Annotate: an axis "tp" of size 4 is written as
    "tp.0"=2, "tp.1"=2 (major first), an axis of prime size keeps its name, an axis of size 1 is left out. Neighbours
    on the last axis are neighbouring ranks.

    Example: `#par.mesh<"dp"=2, "tp.0"=2, "tp.1"=2>`
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names, ArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Size of an axis; 0 if the mesh has no axis of that name.
    int64_t getSize(::mlir::StringAttr axis) const;
    /// Product of the sizes of `axes`, each of which the mesh must have.
    int64_t getSize(::llvm::ArrayRef<::mlir::StringAttr> axes) const;
    /// Number of ranks.
    int64_t getRanks() const;
    /// Coordinate of member `rank` (0 <= rank < getRanks()) on every axis, in axis order.
    ::llvm::SmallVector<int64_t> getCoordinates(int64_t rank) const;
    /// Position of member `rank` in the compound axis `axes`, the first one major.
    int64_t getIndex(int64_t rank, ::llvm::ArrayRef<::mlir::StringAttr> axes) const;
    /// The groups of members that differ only in `axes`; members of a group in the order of getIndex.
    ::llvm::SmallVector<::llvm::SmallVector<int64_t>> getGroups(::llvm::ArrayRef<::mlir::StringAttr> axes) const;
  }];
}

def Par_DimShardingAttr : Par_Attr<"DimSharding", "dim"> {
  let summary = "the axes that shard one dim, major first";
  let description = [{
    `open` says that propagation may shard the dim further; it is gone after Propagate.

    Example: `#par.dim<{"dp", "tp.0"}>`, `#par.dim<{"dp", ?}>`
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes, DefaultValuedParameter<"bool", "false">:$open);
  let hasCustomAssemblyFormat = 1;
}

def Par_ShardingAttr : Par_Attr<"Sharding", "sharding"> {
  let summary = "the sharding of a tensor over the ranks of its stage";
  let description = [{
    One entry a dim, and the axes over which the value is an unreduced sum. Names axes only; the mesh is the stage's.
    A dim of size n over k ranks is split into contiguous shards of ceil(n/k). Elements past n are padding: undefined,
    and masked before a reduction. Over all other axes the value is replicated. No axis occurs twice.

    Example: `#par.sharding<[{"dp"}, {} ], unreduced={"tp"}>`: rows over "dp"; the value is the sum over "tp".
  }];
  let parameters = (ins ArrayRefParameter<"::par::DimShardingAttr">:$dims,
                        OptionalArrayRefParameter<"::mlir::StringAttr">:$unreduced);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// All dims unsharded and closed, nothing unreduced.
    static ShardingAttr getReplicated(::mlir::MLIRContext *context, int64_t rank);
    int64_t getRank() const { return getDims().size(); }
    ::llvm::ArrayRef<::mlir::StringAttr> getAxes(int64_t dim) const { return getDims()[dim].getAxes(); }
    /// The same sharding with other unreduced axes.
    ShardingAttr withUnreduced(::llvm::ArrayRef<::mlir::StringAttr> axes) const;
    /// The same sharding with dim `dim` over `axes`, closed.
    ShardingAttr withDim(int64_t dim, ::llvm::ArrayRef<::mlir::StringAttr> axes) const;
    /// No dim is open.
    ShardingAttr close() const;
    bool isReplicated() const;
    /// True if `axis` shards a dim or is unreduced.
    bool uses(::mlir::StringAttr axis) const;
    /// Type of one shard: every dim divided by the product of its axes, rounded up.
    ::mlir::RankedTensorType getLocalType(::mlir::RankedTensorType global, ::par::MeshAttr mesh) const;
  }];
}

class Par_Enum<string name, list<I32EnumAttrCase> cases> : I32EnumAttr<name, "", cases> {
  let cppNamespace = "::par";
  let genSpecializedAttr = 0;
}
class Par_EnumAttr<EnumAttrInfo info, string mnemonic> : EnumAttr<Par_Dialect, info, mnemonic>;

def Par_VariableKind : Par_Enum<"VariableKind", [
    I32EnumAttrCase<"parameter", 0>, I32EnumAttrCase<"state", 1>, I32EnumAttrCase<"copy", 2>,
    I32EnumAttrCase<"buffer", 3>, I32EnumAttrCase<"counter", 4>, I32EnumAttrCase<"hyperparameter", 5>,
    I32EnumAttrCase<"frozen", 6>, I32EnumAttrCase<"constant", 7>, I32EnumAttrCase<"carried", 8>]>;
def Par_VariableKindAttr : Par_EnumAttr<Par_VariableKind, "variable_kind">;

def Par_ReduceKind : Par_Enum<"ReduceKind", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>,
    I32EnumAttrCase<"bitAnd", 3, "and">, I32EnumAttrCase<"bitOr", 4, "or">, I32EnumAttrCase<"product", 5>]>;
def Par_ReduceKindAttr : Par_EnumAttr<Par_ReduceKind, "reduce_kind">;

def Par_YieldKind : Par_Enum<"YieldKind", [I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"stack", 1>]>;
def Par_YieldKindAttr : EnumAttr<Par_Dialect, Par_YieldKind, "yield_kind">;
def Par_YieldKindArrayAttr : TypedArrayAttrBase<Par_YieldKindAttr, "how each value is joined over microbatches">;

def Par_Predicate : Par_Enum<"Predicate", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]>;
def Par_PredicateAttr : Par_EnumAttr<Par_Predicate, "predicate">;

def Par_FragmentKind : Par_Enum<"FragmentKind", [
    I32EnumAttrCase<"before", 0>, I32EnumAttrCase<"forward", 1>, I32EnumAttrCase<"backward", 2>,
    I32EnumAttrCase<"weight", 3>, I32EnumAttrCase<"reduce", 4>, I32EnumAttrCase<"update", 5>]>;
def Par_FragmentKindAttr : EnumAttr<Par_Dialect, Par_FragmentKind, "fragment_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def Par_BufferKind : Par_Enum<"BufferKind", [
    I32EnumAttrCase<"state", 0>, I32EnumAttrCase<"temp", 1>, I32EnumAttrCase<"input", 2>,
    I32EnumAttrCase<"hyperparameter", 3>]>;
def Par_BufferKindAttr : Par_EnumAttr<Par_BufferKind, "buffer_kind">;

def Par_SlotIndex : Par_Enum<"SlotIndex", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"microbatch", 1>, I32EnumAttrCase<"version", 2>]>;
def Par_SlotIndexAttr : Par_EnumAttr<Par_SlotIndex, "slot_index">;

#endif
