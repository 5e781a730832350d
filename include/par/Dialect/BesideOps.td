#ifndef PAR_DIALECT_BESIDEOPS_TD
#define PAR_DIALECT_BESIDEOPS_TD

include "par/Dialect/Base.td"

// Communication beside compute, in programs. Apart from the other ops, so that few files depend on it.

def Par_DoneOp : Par_Op<"done", [Pure, AttrSizedOperandSegments]> {
  let summary = "waits for a collective that runs beside compute: from here on its results can be used";
  let description = [{
    A collective with the attribute `queue` only starts where it stands. `inputs` are operands of it, and of those
    before it on its queue of whose results it is made, that must not be overwritten before it ends; the results are its
    own, in the same storage.

    (done_c1) the values are all results of one collective with a queue, the inputs operands of it or of those before it
    (or all are loads, once Memory has put them into buffers).

    Example:
    ```
    %1 = par.all_gather %0 dims [0] over ["dp"] {queue = "all_gather"} : (tensor<4xf32>) -> tensor<8xf32>
    ...
    %2 = par.done %1 of %0 : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins Variadic<Par_Tensor>:$values, Variadic<Par_Tensor>:$inputs);
  let results = (outs Variadic<Par_Tensor>:$results);
  let assemblyFormat = "$values (`of` $inputs^)? attr-dict `:` functional-type(operands, $results)";
  let hasVerifier = 1;
}

#endif
