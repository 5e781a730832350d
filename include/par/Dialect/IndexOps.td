#ifndef PAR_DIALECT_INDEXOPS_TD
#define PAR_DIALECT_INDEXOPS_TD

include "par/Dialect/Types.td"

// Ops that address elements by values. Indices are in range: Import wraps negative ones and masks those that data may
// put out of range. A scatter drops an update whose index is out of range.

def Par_GatherOp : Par_TensorOp<"gather", (ins Par_Tensor:$operand, Par_IntTensor:$indices, I64Attr:$dim),
    (outs Par_Tensor:$result), [InferTypeOpAdaptor]> {
  let summary = "rows of the operand along one dim, one for each index";
  let description = [{
    The dim is replaced by the dims of the indices: result[a.., i.., b..] = operand[a.., indices[i..], b..].

    Example: `%2 = par.gather %table, %ids dim 0 : tensor<512x64xf32>, tensor<8x32xi64> to tensor<8x32x64xf32>`
  }];
  let assemblyFormat = "$operand `,` $indices `dim` $dim attr-dict `:` type($operand) `,` type($indices) `to` "
                       "type($result)";
}

def Par_IndexAddOp : Par_TensorOp<"index_add", (ins Par_NumberTensor:$updates, Par_IntTensor:$indices, I64Attr:$dim,
    I64Attr:$size), (outs Par_NumberTensor:$result), [InferTypeOpAdaptor]> {
  let summary = "gather's adjoint: adds each update to the row of a zero tensor that its index names";
  let description = [{
    Updates have the shape of a gather's result; the indices' dims are replaced by one of `size` elements. Additions to
    one row are done in the order of the indices.

    Example: `%2 = par.index_add %ct, %ids dim 0 size 512
      : tensor<8x32x64xf32>, tensor<8x32xi64> to tensor<512x64xf32>`
  }];
  let assemblyFormat = [{$updates `,` $indices `dim` $dim `size` $size attr-dict
    `:` type($updates) `,` type($indices) `to` type($result)}];
}

def Par_TakeOp : Par_TensorOp<"take", (ins Par_Tensor:$operand, Par_IntTensor:$indices, I64Attr:$dim),
    (outs Par_Tensor:$result), [InferTypeOpAdaptor]> {
  let summary = "picks along one dim, separately for each position of the other dims";
  let description = [{
    Operand and indices have one rank and agree in all dims but `dim`: result[.., i, ..] = operand[.., indices[.., i,
    ..], ..].

    Example: `%2 = par.take %z, %labels dim 1 : tensor<32x512xf32>, tensor<32x1xi64> to tensor<32x1xf32>`
  }];
  let assemblyFormat = "$operand `,` $indices `dim` $dim attr-dict `:` type($operand) `,` type($indices) `to` "
                       "type($result)";
}

def Par_ScatterAddOp : Par_TensorOp<"scatter_add", (ins Par_NumberTensor:$updates, Par_IntTensor:$indices, I64Attr:$dim,
    I64Attr:$size), (outs Par_NumberTensor:$result), [InferTypeOpAdaptor]> {
  let summary = "take's adjoint: adds each update where its index points, in a zero tensor";
  let description = [{
    Example: `%2 = par.scatter_add %ct, %labels dim 1 size 512 : tensor<32x1xf32>, tensor<32x1xi64> to
    tensor<32x512xf32>`
  }];
  let assemblyFormat = [{$updates `,` $indices `dim` $dim `size` $size attr-dict
    `:` type($updates) `,` type($indices) `to` type($result)}];
}

def Par_ScatterReduceOp : Par_TensorOp<"scatter_reduce", (ins Par_ReduceKindAttr:$kind, Par_NumberTensor:$updates,
    Par_IntTensor:$indices, I64Attr:$dim, I64Attr:$size), (outs Par_NumberTensor:$result), [InferTypeOpAdaptor]> {
  let summary = "scatter_add with another combination: max, min or product of the updates that point to one place";
  let description = [{
    An element that no index points to is the kind's neutral element: 1 for prod, the smallest number for max.

    Example: `%2 = par.scatter_reduce max %u, %i dim 1 size 8 : tensor<4x3xf32>, tensor<4x3xi64> to tensor<4x8xf32>`
  }];
  let assemblyFormat = [{$kind $updates `,` $indices `dim` $dim `size` $size attr-dict
    `:` type($updates) `,` type($indices) `to` type($result)}];
}

#endif
