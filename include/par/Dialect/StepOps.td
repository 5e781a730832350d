#ifndef PAR_DIALECT_STEPOPS_TD
#define PAR_DIALECT_STEPOPS_TD

include "par/Dialect/Types.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

//===-- Tables: stages and variables ----------------------------------------------------------------------------===//

def Par_StageOp : Par_Op<"stage", [Symbol]> {
  let summary = "a contiguous part of the model and the ranks that hold it";
  let description = "Example: `par.stage @s0 <\"dp\"=2, \"tp\"=2> ranks [0, 1, 2, 3]`";
  let arguments = (ins SymbolNameAttr:$sym_name, Par_MeshAttr:$mesh, DenseI64ArrayAttr:$ranks);
  let assemblyFormat = "$sym_name $mesh `ranks` $ranks attr-dict";
  let hasVerifier = 1;
}

def Par_VariableOp : Par_Op<"variable", [Symbol]> {
  let summary = "a tensor that outlives a step";
  let description = [{
    One table for parameters, optimizer state, compute copies, buffers, counters, hyperparameters, frozen weights and
    constants; checkpoint, initialisation and manifest are derived only from it. A `constant` is known at compile time
    and never written: its `value` is in the bundle. A `carried` variable is an output of one call and the input of the
    next, and starts as zeros. `of` names the parameter that a state or copy belongs to. `stored` is the shape that
    users and checkpoints see, if the graph reshapes it (same elements in row-major order). `sharding` is the plan's
    (Annotate), open dims included; `at` lists its places after Propagate, one `!par.dist` type a stage, the owner
    first. `init` is an initialisation rule ("normal(0.02)", "zeros", ...), `source` the place of the initial value in
    the model file.

    Example: `par.variable @wqkv parameter : tensor<64x3x64xf32> stored tensor<64x192xf32>
      sharding <[{}, {}, {"tp"} ]> at [!par.dist<tensor<64x3x64xf32>, @s0, [{}, {}, {"tp"} ]>]`,
    `par.variable @constant.slopes constant : tensor<3xf32> value dense<[0.5, 0.25, 0.125]> : tensor<3xf32>`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Par_VariableKindAttr:$kind, OptionalAttr<FlatSymbolRefAttr>:$of,
                       TypeAttrOf<Par_Tensor>:$type, OptionalAttr<TypeAttrOf<Par_Tensor>>:$stored,
                       OptionalAttr<Par_ShardingAttr>:$sharding, OptionalAttr<TypeArrayAttr>:$at,
                       OptionalAttr<ElementsAttr>:$value, OptionalAttr<StrAttr>:$init,
                       OptionalAttr<DictionaryAttr>:$source);
  let assemblyFormat = [{$sym_name $kind (`of` $of^)? `:` $type (`stored` $stored^)? (`sharding` $sharding^)?
    (`at` $at^)? (`value` $value^)? (`init` $init^)? (`source` $source^)? attr-dict}];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
  }];
}

//===-- Steps ---------------------------------------------------------------------------------------------------===//

class Par_FunctionOp<string mnemonic, list<Trait> traits = []>
    : Par_Op<mnemonic, !listconcat(traits, [IsolatedFromAbove, FunctionOpInterface])> {
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let skipDefaultBuilders = 1;
  code functionMethods = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Block &getBlock() { return getBody().front(); }
    /// The operation that ends the body (par.return).
    ::mlir::Operation *getTerminator() { return getBody().front().getTerminator(); }
  }];
}

def Par_StepOp : Par_FunctionOp<"step", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "one entry of the model, called as a whole: train, eval, predict";
  let description = [{
    Up to Train a step holds tensor ops on one device and the whole batch; from Split on, only the seven step ops
    (read, write, loop, run, transfer, reshard, stage_all_reduce) on `!par.dist` values. `inputs` and `outputs` name the
    graph's inputs and results as users know them, in order. The batch dim of an input is dim 0 unless `batch_dims`
    (one a input, -1 for none) says otherwise.

    Example:
    ```
    par.step @eval(%x: tensor<32x64xf32>) -> tensor<f32> attributes {inputs = ["x"], outputs = ["loss"]} {
      %w = par.read @w : tensor<64xf32>
      ...
      par.return %l : tensor<f32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<StrArrayAttr>:$inputs, OptionalAttr<StrArrayAttr>:$outputs,
                       OptionalAttr<DenseI64ArrayAttr>:$batch_dims,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type)>];
  let extraClassDeclaration = functionMethods;
  let hasVerifier = 1;
}

def Par_ReturnOp : Par_Op<"return", [Pure, Terminator, ReturnLike,
    ParentOneOf<["StepOp", "FragmentOp", "KernelOp"]>]> {
  let summary = "results of a step, a fragment or a kernel";
  let description = "Example: `par.return %l : tensor<f32>`";
  let arguments = (ins Variadic<Par_Value>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

def Par_ReadOp : Par_Op<"read", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemRead]>]> {
  let summary = "value of a variable, before this step's writes";
  let description = [{
    `behind` d: the value before the last d writes (asynchronous schedules). Every read of a step sees the value from
    before the step, also if it follows a write. `batch` d: dim d of a carried variable is the step's batch; -1: none
    is.

    Example: `%w = par.read @w : tensor<64xf32>`, `%w = par.read @w : !par.dist<tensor<64xf32>, @s0, [{} ]>`,
    `%k = par.read @past.key batch 0 : tensor<8x4x128x64xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, DefaultValuedAttr<I64Attr, "0">:$behind,
                       DefaultValuedAttr<I64Attr, "-1">:$batch);
  let results = (outs Par_Value:$result);
  let assemblyFormat = "$variable (`behind` $behind^)? (`batch` $batch^)? attr-dict `:` type($result)";
}

def Par_WriteOp : Par_Op<"write", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, MemoryEffects<[MemWrite]>]> {
  let summary = "new value of a variable, seen by the next step";
  let description = "Example: `par.write %n to @w : tensor<64xf32>`; on a stage's copy: the operand's type says which";
  let arguments = (ins Par_Value:$operand, FlatSymbolRefAttr:$variable);
  let assemblyFormat = "$operand `to` $variable attr-dict `:` type($operand)";
}

def Par_LoopOp : Par_Op<"loop", [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "slices time: runs the body once for each microbatch";
  let description = [{
    Operands of global shape (m, B/m, ...) are sliced: the body's first argument is the microbatch index (an i64
    scalar tensor), then one slice (B/m, ...) an operand, the dist type without its first dim. Values from outside are
    used freely. Results are the accumulators: `sum` adds over microbatches from microbatch 0 on, in the result's
    element type and sharding; `stack` gives (m, ...). `labels` names for people and tests the variable whose gradient a
    result accumulates, or a term of it (tied parameters); empty for other results.

    Example:
    ```
    %l = par.loop 4 (%x) : (!par.dist<tensor<4x8xf32>, @s0, [{}, {"dp"} ]>)
        -> (!par.dist<tensor<f32>, @s0, [], unreduced={"dp"}>) {
    ^bb0(%i: tensor<i64>, %xi: !par.dist<tensor<8xf32>, @s0, [{"dp"} ]>):
      %s = par.run @s0.forward(%xi) : ...
      par.yield [sum] %s : ...
    }
    ```
  }];
  let arguments = (ins I64Attr:$count, Variadic<Par_Value>:$slices, OptionalAttr<StrArrayAttr>:$labels);
  let results = (outs Variadic<Par_Value>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count `(` $slices `)` attr-dict `:` functional-type($slices, $results) $body";
  let hasVerifier = 1;
}

def Par_YieldOp : Par_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"LoopOp">]> {
  let summary = "adds one microbatch's values to the loop's results";
  let description = "Example: `par.yield [sum, stack] %l, %z : tensor<f32>, tensor<8xf32>`";
  let arguments = (ins Par_YieldKindArrayAttr:$kinds, Variadic<Par_Value>:$operands);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, $_builder.getArrayAttr({}), ::mlir::ValueRange()); }]>];
  let assemblyFormat = "custom<YieldKinds>($kinds) attr-dict ($operands^ `:` type($operands))?";
}

def Par_RunOp : Par_Op<"run", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a fragment on its stage";
  let description = [{
    Arguments and results are dist values of the fragment's stage; their global (before Partition) or local (after)
    tensor types are the fragment's argument and result types.

    Example: `%a = par.run @s0.forward(%w, %x) : (...) -> !par.dist<tensor<8x256xf32>, @s0, [{"dp"}, {"tp"} ]>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$fragment, Variadic<Par_Value>:$operands);
  let results = (outs Variadic<Par_Value>:$results);
  let assemblyFormat = "$fragment `(` $operands `)` attr-dict `:` functional-type($operands, $results)";
}

def Par_TransferOp : Par_Op<"transfer", [Pure]> {
  let summary = "moves a value to another stage";
  let description = [{
    Before Propagate the sharding may be `?`. After it, source and target shardings may differ only as the meshes do.

    Example: `%b = par.transfer %a : !par.dist<tensor<8xf32>, @s0, [{"dp"} ]>
    to !par.dist<tensor<8xf32>, @s1, [{"dp"} ]>`
  }];
  let arguments = (ins Par_DistType:$operand);
  let results = (outs Par_DistType:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}

def Par_ReshardOp : Par_Op<"reshard", [Pure]> {
  let summary = "another sharding on the same stage";
  let description = [{
    From `unreduced={"dp"}` this is a reduction: to a replicated dim it all-reduces, to a dim over "dp" it
    reduce-scatters.

    Example: `%r = par.reshard %g : !par.dist<tensor<8xf32>, @s0, [{} ], unreduced={"dp"}>
    to !par.dist<tensor<8xf32>, @s0, [{} ]>`
  }];
  let arguments = (ins Par_DistType:$operand);
  let results = (outs Par_DistType:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
}

def Par_StageAllReduceOp : Par_Op<"stage_all_reduce", [Pure]> {
  let summary = "combines scalars over all stages; one result an operand, each the whole";
  let description = [{
    Before Split its operands are plain scalars, one a parameter (gradient norm, found-inf); after it one a stage. Each
    result is the combination of all operands.

    Example: `%a1, %b1 = par.stage_all_reduce sum %a, %b
    : (!par.dist<tensor<f32>, @s0, []>, !par.dist<tensor<f32>, @s1, []>)
        -> (...)`, operand and result types pairwise equal
  }];
  let arguments = (ins Par_ReduceKindAttr:$kind, Variadic<Par_Value>:$operands);
  let results = (outs Variadic<Par_Value>:$results);
  let assemblyFormat = "$kind $operands attr-dict `:` functional-type($operands, $results)";
  let hasVerifier = 1;
}

//===-- Fragments -----------------------------------------------------------------------------------------------===//

def Par_FragmentOp : Par_FunctionOp<"fragment", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "the part of a step that one stage runs at once";
  let description = [{
    Isolated, pure and anonymous: no variable, stage or layer names in the body, so that equal layers are equal by
    hash. Global shapes until Partition, local ones after it (`local`). `shardings` has one entry an
    argument from Propagate on; `result_shardings` one a result.

    Example:
    ```
    par.fragment @s0.forward(%w: tensor<64x32xf32>, %x: tensor<8x64xf32>) -> tensor<8x32xf32>
        attributes {stage = @s0, kind = #par.fragment_kind<forward>} {
      %0 = par.dot %x, %w contracting [1] x [0] : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
      par.return %0 : tensor<8x32xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, FlatSymbolRefAttr:$stage,
                       Par_FragmentKindAttr:$kind, UnitAttr:$local, OptionalAttr<ArrayAttr>:$shardings,
                       OptionalAttr<ArrayAttr>:$result_shardings,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type, "::llvm::StringRef":$stage,
                                 "::par::FragmentKind":$kind)>];
  let extraClassDeclaration = functionMethods;
  let hasVerifier = 1;
}

#endif
