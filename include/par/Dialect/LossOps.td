#ifndef PAR_DIALECT_LOSSOPS_TD
#define PAR_DIALECT_LOSSOPS_TD

include "par/Dialect/Types.td"

def Par_CrossEntropyOp : Par_TensorOp<"cross_entropy", (ins Par_FloatTensor:$logits, Par_IntTensor:$labels,
    DefaultValuedAttr<I64Attr, "-100">:$ignore), (outs Par_FloatTensor:$loss, Par_FloatTensor:$lse),
        [InferTypeOpAdaptor]> {
  let summary = "loss of each token: log(sum e^z) - z[label] over the last dim; 0 where the label is ignored";
  let description = [{
    Never reduces the batch. `lse` is log(sum e^z), which the gradient needs.

    Example: `%t, %lse = par.cross_entropy %z, %y ignore -100
      : (tensor<8x32x512xf32>, tensor<8x32xi64>) -> (tensor<8x32xf32>, tensor<8x32xf32>)`
  }];
  let assemblyFormat = "$logits `,` $labels `ignore` $ignore attr-dict `:` functional-type(operands, results)";
}
def Par_CrossEntropyGradOp : Par_TensorOp<"cross_entropy_grad", (ins Par_FloatTensor:$cotangent,
    Par_FloatTensor:$logits,
    Par_IntTensor:$labels, Par_FloatTensor:$lse, DefaultValuedAttr<I64Attr, "-100">:$ignore),
    (outs Par_FloatTensor:$result), [AllTypesMatch<["logits", "result"]>, AllTypesMatch<["cotangent", "lse"]>]> {
  let summary = "ct (e^(z - lse) - [label]) where the label counts, else 0";
  let description = [{
    Example: `%1 = par.cross_entropy_grad %ct, %z, %y, %lse ignore -100
      : (tensor<32xf32>, tensor<32x512xf32>, tensor<32xi64>, tensor<32xf32>) -> tensor<32x512xf32>`
  }];
  let assemblyFormat = [{$cotangent `,` $logits `,` $labels `,` $lse `ignore` $ignore attr-dict
    `:` functional-type(operands, results)}];
}

#endif
