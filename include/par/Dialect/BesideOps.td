#ifndef PAR_DIALECT_BESIDEOPS_TD
#define PAR_DIALECT_BESIDEOPS_TD

include "par/Dialect/Base.td"

// Communication that overlaps with compute, in programs. In a file of its own, so that few files depend on it.

def Par_DoneOp : Par_Op<"done", [Pure, AttrSizedOperandSegments]> {
  let summary = "waits for an asynchronous collective: its results can be used from here on";
  let description = [{
    A collective with the attribute `queue` is asynchronous: it only starts at its position. `inputs` are operands that
    must not be overwritten before it ends: its own, and those of earlier collectives of its queue that feed it. The
    results are the collective's, in the same storage.

    (done_c1) the values are all results of one collective with a queue; the inputs are operands of it or of earlier
    ones that feed it (after Memory, all are loads of buffers).

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
