#ifndef PAR_DIALECT_COLLECTIVEOPS_TD
#define PAR_DIALECT_COLLECTIVEOPS_TD

include "par/Dialect/Interfaces/Collective.td"
include "par/Dialect/Types.td"

// Communication inside a local fragment: over axes of the stage's mesh, variadic (a bucket is one op with many
// operands), with an explicit reduction kind. Axes are major first; members of a group are in that order.

class Par_CollectiveOp<string mnemonic, dag extra, list<Trait> traits = []>
    : Par_Op<mnemonic, !listconcat(traits, [Pure, CollectiveOpInterface])> {
  // `queue`, `level` and `by_blocks` are set by the phase Collectives; attr-dict prints them.
  let arguments = !con((ins Variadic<Par_Tensor>:$inputs), extra,
                       (ins ArrayAttr:$axes, DefaultValuedStrAttr<StrAttr, "">:$queue, UnitAttr:$level,
                        UnitAttr:$by_blocks));
  let results = (outs Variadic<Par_Tensor>:$results);
  let hasVerifier = 1;
}

def Par_AllReduceOp : Par_CollectiveOp<"all_reduce", (ins Par_ReduceKindAttr:$kind)> {
  let summary = "combines a value over the ranks of a group; all get the result";
  let description = [{
    (all_reduce_c1) operand and result types are pairwise equal.

    Example: `%1 = par.all_reduce sum %0 over ["tp"] : (tensor<4x8xf32>) -> tensor<4x8xf32>`
    ```
    rank 0: [1, 2]   rank 1: [3, 4]   ->   both: [4, 6]
    ```
  }];
  let assemblyFormat = "$kind $inputs `over` $axes attr-dict `:` functional-type($inputs, $results)";
}

def Par_AllGatherOp : Par_CollectiveOp<"all_gather", (ins DenseI64ArrayAttr:$dims)> {
  let summary = "joins the shards of a group along a dim (one a operand)";
  let description = [{
    (all_gather_c1) result dim `dims[i]` is the operand's times the group's size, the others are equal. The padding of
    an uneven shard is gathered too; a slice removes it.

    Example: `%1 = par.all_gather %0 dims [0] over ["tp"] : (tensor<4x8xf32>) -> tensor<8x8xf32>`
    ```
    rank 0: [1, 2]   rank 1: [3, 4]   ->   both: [1, 2, 3, 4]
    ```
  }];
  let assemblyFormat = "$inputs `dims` $dims `over` $axes attr-dict `:` functional-type($inputs, $results)";
}

def Par_ReduceScatterOp : Par_CollectiveOp<"reduce_scatter", (ins Par_ReduceKindAttr:$kind, DenseI64ArrayAttr:$dims)> {
  let summary = "combines a value over a group; each rank gets its shard along a dim";
  let description = [{
    (reduce_scatter_c1) operand dim `dims[i]` is the result's times the group's size; pad first if it does not divide.

    Example: `%1 = par.reduce_scatter sum %0 dims [0] over ["dp"] : (tensor<8x8xf32>) -> tensor<4x8xf32>`
    ```
    rank 0: [1, 2]   rank 1: [3, 4]   ->   rank 0: [4]   rank 1: [6]
    ```
  }];
  let assemblyFormat = "$kind $inputs `dims` $dims `over` $axes attr-dict `:` functional-type($inputs, $results)";
}

def Par_AllToAllOp : Par_CollectiveOp<"all_to_all", (ins DenseI64ArrayAttr:$split_dims,
    DenseI64ArrayAttr:$concat_dims)> {
  let summary = "splits along one dim, exchanges, joins along another: moves an axis from dim to dim";
  let description = [{
    (all_to_all_c1) result dim split_dims[i] is the operand's divided by the group's size, dim concat_dims[i] times it.

    Example: `%1 = par.all_to_all %0 split [0] concat [1] over ["tp"] : (tensor<4x2xf32>) -> tensor<2x4xf32>`
  }];
  let assemblyFormat = [{$inputs `split` $split_dims `concat` $concat_dims `over` $axes attr-dict
    `:` functional-type($inputs, $results)}];
}

def Par_AxisIndexOp : Par_Op<"axis_index", [Pure]> {
  let summary = "this rank's position in the compound of some axes, first one major; an i64 scalar";
  let description = "Example: `%0 = par.axis_index over [\"tp\"] : tensor<i64>`";
  let arguments = (ins ArrayAttr:$axes);
  let results = (outs Par_IntTensor:$result);
  let assemblyFormat = "`over` $axes attr-dict `:` type($result)";
}

#endif
