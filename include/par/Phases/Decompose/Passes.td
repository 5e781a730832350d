#ifndef PAR_DECOMPOSE_PASSES_TD
#define PAR_DECOMPOSE_PASSES_TD

include "mlir/Pass/PassBase.td"

def DecomposeCollectivesPass : Pass<"par-decompose-collectives", "::mlir::ModuleOp"> {
  let summary = "cuts gathers before products, and scatters behind them, into chunks that run beside each other's "
                "products";
  let description = [{
    Expects: local fragments (after Partition). Leaves: an all_gather that products alone read, with these products, and
    a par.dot whose result a reduce_scatter alone reads, with this one, as `chunks` of each. 0: as many of 2, 4, 8 and
    16 as take least time by the hardware file, if that is less than without chunks, with what cutting and joining cost;
    1: none. The dim that is cut, of those of the gathered (scattered) tensor that chunks divide, is the one that costs
    least. It is kept by the first product, which sums over the same elements as before. Another product that reads the
    gather may sum over it (the gradient of a weight), if its result is f32 or f64: that is the sum of the chunks'
    products, the first one's first. A slice that takes the padding of the gathered dim off, and a pad that fills up the
    scattered one, stand for each chunk too, which is then cut along another dim. Pairs that no dim fits stay, and so do
    gathers of what is there at the fragment's begin, and scatters whose result only leaves it: they run beside compute
    without chunks.
    Fails: where there is no such hardware file.

    ```
    %1 = par.all_gather %0 dims [1] over ["tp"] : (tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
    %2 = par.dot %1, %w contracting [2] x [0] : (tensor<2x8x8xf32>, tensor<8x6xf32>) -> tensor<2x8x6xf32>
    ```
    becomes
    ```
    %1 = par.slice %0 [0, 0, 0] to [1, 4, 8] by [1, 1, 1] : tensor<2x4x8xf32> to tensor<1x4x8xf32>
    %2 = par.all_gather %1 dims [1] over ["tp"] : (tensor<1x4x8xf32>) -> tensor<1x8x8xf32>
    %3 = par.slice %0 [1, 0, 0] to [2, 4, 8] by [1, 1, 1] : tensor<2x4x8xf32> to tensor<1x4x8xf32>
    %4 = par.all_gather %3 dims [1] over ["tp"] : (tensor<1x4x8xf32>) -> tensor<1x8x8xf32>
    %5 = par.dot %2, %w contracting [2] x [0] : (tensor<1x8x8xf32>, tensor<8x6xf32>) -> tensor<1x8x6xf32>
    %6 = par.dot %4, %w contracting [2] x [0] : (tensor<1x8x8xf32>, tensor<8x6xf32>) -> tensor<1x8x6xf32>
    %7 = par.concat %5, %6 dim 0 : (tensor<1x8x6xf32>, tensor<1x8x6xf32>) -> tensor<2x8x6xf32>
    ```
  }];
  let options = [Option<"chunks", "chunks", "int64_t", "0", "of each pair; 0: as many as save time, 1: none">,
                 Option<"hardware", "hardware", "std::string", "\"cpu\"",
                        "hardware file that costs are predicted from">];
}

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

def VerifyDecomposePass : Pass<"par-verify-decompose", "::mlir::ModuleOp"> {
  let summary = "gate: what must hold after Decompose";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: where an all_gather, a reduce_scatter or an all_to_all of a fragment
    works along another dim than 0.

    ```
    %1 = par.all_gather %0 dims [1] over ["tp"] : (tensor<4x8xf32>) -> tensor<4x16xf32>    // error
    ```
  }];
}

#endif
