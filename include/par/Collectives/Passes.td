#ifndef PAR_COLLECTIVES_PASSES_TD
#define PAR_COLLECTIVES_PASSES_TD

include "mlir/Pass/PassBase.td"

def FlattenCollectivesPass : Pass<"par-flatten-collectives", "::mlir::ModuleOp"> {
  let summary = "makes gathers, scatters and exchanges work along dim 0";
  let description = [{
    Expects: local fragments (after Partition). Leaves: every all_gather, reduce_scatter and all_to_all with the group's
    members as dim 0, where the parts of a member lie one after the other in memory; transposes and reshapes around it
    put them where they belong. What works along dim 0 already stays.
    Fails: never.

    ```
    %1 = par.all_gather %0 dims [1] over ["tp"] : (tensor<4x8xf32>) -> tensor<4x16xf32>
    ```
    becomes
    ```
    %1 = par.reshape %0 : tensor<4x8xf32> to tensor<1x4x8xf32>
    %2 = par.all_gather %1 dims [0] over ["tp"] : (tensor<1x4x8xf32>) -> tensor<2x4x8xf32>
    %3 = par.transpose %2 [1, 0, 2] : tensor<2x4x8xf32> to tensor<4x2x8xf32>
    %4 = par.reshape %3 : tensor<4x2x8xf32> to tensor<4x16xf32>
    ```
  }];
}

#endif
