#ifndef PAR_DIALECT_ATTENTIONOPS_TD
#define PAR_DIALECT_ATTENTIONOPS_TD

include "par/Dialect/Types.td"

// Attention of heads: q is [b, h, sq, d], k [b, g, sk, d], v [b, g, sk, e], where g divides h and query head i meets
// key-value head i / (h / g). The scores are s = scale q k^T, plus the mask, whose dims are those of [b, h, sq, sk] or
// 1; with `causal`, query i meets only keys 0 to i. Tensors in memory are of size sq or sk, never sq x sk.

class Par_AttentionLikeOp<string mnemonic, dag operands, dag results_>
    : Par_TensorOp<mnemonic, !con(operands, (ins Optional<Par_FloatTensor>:$mask, F64Attr:$scale,
                                             DefaultValuedAttr<BoolAttr, "false">:$causal)), results_> {
  let hasVerifier = 1;
}

def Par_AttentionOp : Par_AttentionLikeOp<"attention",
    (ins Par_FloatTensor:$query, Par_FloatTensor:$key, Par_FloatTensor:$value),
    (outs Par_FloatTensor:$result, Par_FloatTensor:$lse)> {
  let summary = "softmax(scale q k^T + mask) v, and log(sum e^s) of each query, which the gradient needs";
  let description = [{
    The result has the operands' element type, lse that in which sums are computed: f32 for narrower ones.

    Example: `%o, %lse = par.attention %q, %k, %v scale 0.125 {causal = true}
      : (tensor<8x12x64x32xbf16>, tensor<8x12x64x32xbf16>, tensor<8x12x64x32xbf16>)
      -> (tensor<8x12x64x32xbf16>, tensor<8x12x64xf32>)`
  }];
  let assemblyFormat = [{$query `,` $key `,` $value (`mask` $mask^)? `scale` $scale attr-dict
    `:` functional-type(operands, results)}];
}
def Par_AttentionGradOp : Par_AttentionLikeOp<"attention_grad",
    (ins Par_FloatTensor:$cotangent, Par_FloatTensor:$query, Par_FloatTensor:$key, Par_FloatTensor:$value,
         Par_FloatTensor:$attended, Par_FloatTensor:$lse),
    (outs Par_FloatTensor:$query_cotangent, Par_FloatTensor:$key_cotangent, Par_FloatTensor:$value_cotangent)> {
  let summary = "cotangents of attention's query, key and value";
  let description = [{
    With p = e^(s - lse) and t = p (ct v^T - sum(ct attended)): scale t k, scale t^T q and p^T ct; `attended` is the
    forward op's result.

    Example: `%dq, %dk, %dv = par.attention_grad %ct, %q, %k, %v, %o, %lse scale 0.125 : (...) -> (...)`
  }];
  let assemblyFormat = [{$cotangent `,` $query `,` $key `,` $value `,` $attended `,` $lse (`mask` $mask^)? `scale`
      $scale
    attr-dict `:` functional-type(operands, results)}];
}

#endif
