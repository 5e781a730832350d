#ifndef PAR_DIALECT_PROGRAMOPS_TD
#define PAR_DIALECT_PROGRAMOPS_TD

include "par/Dialect/StepOps.td"

// Programs, which the ranks of one role execute. Values inside a block are local tensors. A value that outlives the run
// of its block is in a buffer, in the slot of the run's microbatch (or version) modulo the depth.

def Par_ProgramOp : Par_Op<"program", [Symbol, SymbolTable, IsolatedFromAbove, NoTerminator,
    HasParent<"::mlir::ModuleOp">, SingleBlock]> {
  let summary = "one role's program: buffers, blocks, entries";
  let description = [{
    It runs the fragments of all stages on its ranks, one or several. Stages on the same ranks have the same mesh; a
    value transferred between them is not moved.

    Example, and the begin of one for two stages, `par.program @p on @s0, @s2 ranks [0, 1] {`:
    ```
    par.program @stage0 on @s0 ranks [0, 1, 2, 3] {
      par.buffer @w1 state of "w1" : tensor<64x128xf32>
      par.buffer @act temp by microbatch depth 2 : tensor<4x128xf32>
      par.block @forward {
        %w = par.load @w1 : tensor<64x128xf32>
        ...
        par.store %a to @act : tensor<4x128xf32>
      }
      par.entry @train runs [@forward, @send, @forward, @send] microbatches [0, 0, 1, 1]
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefArrayAttr:$stages, DenseI64ArrayAttr:$ranks);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `on` custom<Symbols>($stages) `ranks` $ranks attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    bool holds(::mlir::FlatSymbolRefAttr stage) { return ::llvm::is_contained(getStages(), stage); }
    /// The role's name for users: "s0", with two stages "s0+s2".
    std::string getRole();
    /// The first of its stages. All of them have the same mesh and ranks, for which any one can be asked.
    ::mlir::FlatSymbolRefAttr getFirstStage() { return ::llvm::cast<::mlir::FlatSymbolRefAttr>(getStages()[0]); }
  }];
}

def Par_BufferOp : Par_Op<"buffer", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "storage that blocks load from and store to";
  let description = [{
    `state` survives the entry (of: variable name), `input` is fed once a microbatch or step (of: input name),
    `hyperparameter` is written by the host before an entry (of: name), `temp` lives within an entry. A `temp` of a
    variable accumulates its gradient or a term of it, which the entry stores there last. `by` is the index that picks
    the slot, `depth` the number of slots. `as` is the type that the buffer is a shard of: for `state` and
    `hyperparameter` the variable on this stage, for `input` the whole input, or one microbatch of it if it is fed once
    a microbatch (`sliced`). `at` gives one arena offset (bytes) a slot, set by Memory. `host`: it is in host memory.
    `saved`: forward saves a value there for backward of the same microbatch.

    Example: `par.buffer @act temp by microbatch depth 2 : tensor<4x128xf32> at [0, 4096]`,
    `par.buffer @x input of "x" sliced : tensor<4x8xf32> as !par.dist<tensor<8x8xf32>, @s0, [{"dp"}, {} ]>`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Par_BufferKindAttr:$kind, OptionalAttr<StrAttr>:$of,
                       UnitAttr:$sliced, DefaultValuedAttr<Par_SlotIndexAttr, "::par::SlotIndex::none">:$index,
                       DefaultValuedAttr<I64Attr, "1">:$depth, TypeAttrOf<Par_Tensor>:$type,
                       OptionalAttr<TypeAttrOf<Par_DistType>>:$dist, OptionalAttr<DenseI64ArrayAttr>:$at,
                       UnitAttr:$host, UnitAttr:$saved);
  let assemblyFormat = [{$sym_name $kind (`of` $of^)? (`sliced` $sliced^)? (`by` $index^)? (`depth` $depth^)? `:` $type
    (`as` $dist^)? (`at` $at^)? attr-dict}];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
  }];
}

def Par_BlockOp : Par_Op<"block", [Symbol, HasParent<"ProgramOp">, NoTerminator, SingleBlock]> {
  let summary = "a fragment with the communication around it, as a rank executes it; run once for a microbatch";
  let description = "Example: `par.block @forward { ... }`; see par.program";
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

def Par_EntryOp : Par_Op<"entry", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "the order in which a rank runs its blocks in one call of an entry";
  let description = "Example: `par.entry @train runs [@forward, @backward] microbatches [0, 0]`";
  let arguments = (ins SymbolNameAttr:$sym_name, ArrayAttr:$blocks, DenseI64ArrayAttr:$microbatches);
  let assemblyFormat = "$sym_name `runs` $blocks `microbatches` $microbatches attr-dict";
  let hasVerifier = 1;
}

class Par_BufferAccess<string mnemonic, list<Trait> traits> : Par_Op<mnemonic, !listconcat(traits,
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>])>;

def Par_LoadOp : Par_BufferAccess<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "value of a buffer's slot";
  let description = "Example: `%w = par.load @w1 : tensor<64x128xf32>`";
  let arguments = (ins FlatSymbolRefAttr:$buffer);
  let results = (outs Par_Tensor:$result);
  let assemblyFormat = "$buffer attr-dict `:` type($result)";
}
def Par_StoreOp : Par_BufferAccess<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes a value into a buffer's slot";
  let description = "Example: `par.store %a to @act : tensor<4x128xf32>`";
  let arguments = (ins Par_Tensor:$operand, FlatSymbolRefAttr:$buffer);
  let assemblyFormat = "$operand `to` $buffer attr-dict `:` type($operand)";
}

def Par_FetchOp : Par_Op<"fetch", [MemoryEffects<[MemWrite]>]> {
  let summary = "hands a value to the host under a name: a metric or a result";
  let description = [{
    `of` is the type that the value is a shard of, absent if every rank has the same. `sliced`: the value is one
    microbatch of the result, whose rows are those of all microbatches in order.

    Example: `par.fetch %l as "loss" : tensor<f32>`,
    `par.fetch %y as "logits" sliced : tensor<4xf32> of !par.dist<tensor<8xf32>, @s1, [{"dp"} ]>`
  }];
  let arguments = (ins Par_Tensor:$operand, StrAttr:$name, UnitAttr:$sliced,
                       OptionalAttr<TypeAttrOf<Par_DistType>>:$dist);
  let assemblyFormat = "$operand `as` $name (`sliced` $sliced^)? attr-dict `:` type($operand) (`of` $dist^)?";
}

def Par_ExecOp : Par_Op<"exec", [Pure]> {
  let summary = "runs a local fragment; from Schedule to Kernels, which puts its body in place";
  let description = "Example: `%a = par.exec @s0.forward(%w, %x) : (...) -> tensor<4x128xf32>`";
  let arguments = (ins FlatSymbolRefAttr:$fragment, Variadic<Par_Tensor>:$operands);
  let results = (outs Variadic<Par_Tensor>:$results);
  let assemblyFormat = "$fragment `(` $operands `)` attr-dict `:` functional-type($operands, $results)";
}

def Par_SendOp : Par_Op<"send", [MemoryEffects<[MemWrite]>]> {
  let summary = "sends values to the peer rank of another stage; a rendezvous with its recv of the same tag";
  let description = [{
    `peers` gives, for each member rank of this role, the world rank it talks to. Several operands are one group.

    Example: `par.send %a to [4, 5, 6, 7] tag 7 : tensor<4x128xf32>`
  }];
  let arguments = (ins Variadic<Par_Tensor>:$operands, DenseI64ArrayAttr:$peers, I64Attr:$tag);
  let assemblyFormat = "$operands `to` $peers `tag` $tag attr-dict `:` type($operands)";
}
def Par_RecvOp : Par_Op<"recv", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "receives values from the peer rank of another stage";
  let description = "Example: `%a = par.recv from [0, 1, 2, 3] tag 7 : tensor<4x128xf32>`";
  let arguments = (ins DenseI64ArrayAttr:$peers, I64Attr:$tag);
  let results = (outs Variadic<Par_Tensor>:$results);
  let assemblyFormat = "`from` $peers `tag` $tag attr-dict `:` type($results)";
}

def Par_WorldAllReduceOp : Par_Op<"world_all_reduce", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all-reduces scalars over groups of world ranks: stage_all_reduce in a program";
  let description = [{
    `groups` lists the world ranks of each group; every rank is in one. Matched over roles by `tag`.

    Example: `%s = par.world_all_reduce sum %n groups [array<i64: 0, 4>, array<i64: 1, 5>] tag 9
    : (tensor<f32>) -> tensor<f32>`
  }];
  let arguments = (ins Variadic<Par_Tensor>:$operands, Par_ReduceKindAttr:$kind, ArrayAttr:$groups, I64Attr:$tag);
  let results = (outs Variadic<Par_Tensor>:$results);
  let assemblyFormat = "$kind $operands `groups` $groups `tag` $tag attr-dict `:` functional-type($operands, $results)";
}

def Par_KernelOp : Par_FunctionOp<"kernel", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "one launch's worth of work, with its meaning as a body of tensor ops";
  let description = [{
    `implementation` is "generated" (Codegen compiles the body), "builtin:NAME", "library:NAME", or "fill" (zeros after
    the operand, in place). In every case the body defines the result, and the interpreter runs it. `tied` gives for
    every result the argument whose storage it reuses in place, or -1; the result of "fill" is larger than that.
    Equal bodies are one kernel.

    Example:
    ```
    par.kernel @k0(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32>
        attributes {implementation = "generated", tied = array<i64: 0>} {
      %0 = par.add %a, %b : tensor<4xf32>
      par.return %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, StrAttr:$implementation,
                       OptionalAttr<DenseI64ArrayAttr>:$tied,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type,
                                 "::llvm::StringRef":$implementation)>];
  let extraClassDeclaration = functionMethods;
}

def Par_LaunchOp : Par_Op<"launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "launches a kernel on local tensors";
  let description = "Example: `%c = par.launch @k0(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`";
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Par_Tensor>:$operands);
  let results = (outs Variadic<Par_Tensor>:$results);
  let assemblyFormat = "$kernel `(` $operands `)` attr-dict `:` functional-type($operands, $results)";
}

#endif
