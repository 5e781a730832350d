#ifndef PAR_DECOMPOSE_PASSES_TD
#define PAR_DECOMPOSE_PASSES_TD

include "mlir/Pass/PassBase.td"

def DecomposeCollectivesPass : Pass<"par-decompose-collectives", "::mlir::ModuleOp"> {
  let summary = "splits gathers before matmuls, and scatters after them, into chunks that overlap with each other's "
                "matmuls";
  let description = [{
    Expects: local fragments (after Partition). Leaves: an all_gather that only matmuls read, with these matmuls, and a
    par.dot that only a reduce_scatter reads, with the reduce_scatter, split into `chunks`. 0: the fastest of 2, 4, 8
    and 16 by the hardware file, including the cost of splitting and joining, if it is faster than no chunks; 1: none.
    The split dim is the cheapest dim of the gathered (scattered) tensor that the chunks divide. The first matmul keeps
    it and so sums over the same elements as before. A later matmul that reads the gather may contract it (the gradient
    of a weight), if its result is f32 or f64: the result is the sum of the chunks' matmuls in order. A slice that
    removes the padding of the gathered dim, and a pad that fills up the scattered one, are repeated for each chunk,
    which is then split along another dim. Pairs without a fitting dim stay. So do gathers of values that exist at the
    fragment's begin, and scatters whose result only leaves it: they overlap with compute without chunks.
    Fails: if the hardware file is not found.

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
    members as dim 0, so that the part of a member is contiguous in memory; transposes and reshapes around it move dim 0
    to its place. Collectives along dim 0 stay.
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
  let summary = "gate of Decompose";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: if an all_gather, a reduce_scatter or an all_to_all of a fragment
    works along another dim than 0.

    ```
    %1 = par.all_gather %0 dims [1] over ["tp"] : (tensor<4x8xf32>) -> tensor<4x16xf32>    // error
    ```
  }];
}

#endif
