#ifndef PAR_IMPORT_PASSES_TD
#define PAR_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def ReadOnnxPass : Pass<"par-read-onnx", "::mlir::ModuleOp"> {
  let summary = "reads an ONNX file into an empty module";
  let description = [{
    Expects: an empty module; `model` names an `.onnx` or `.onnx.gz` file.
    Leaves: a table of variables and one step on one device with the whole batch: `@eval`, which returns the loss, with
    `train`, else `@predict` with the graph's outputs. All shapes are static. Values that depend on no input and no
    parameter are folded: up to 1,024 elements to constants, larger ones to iotas and comparisons or `buffer` variables;
    a dim along which a known value is constant is a broadcast. Sequences are slices, means are sums and
    multiplications, and dims that the exporter merged around a matmul (batch with sequence) stay apart. Every op's
    location names the ONNX node, its module path and its source line.
    Fails: if the file is not ONNX or damaged, a dim has no size, an op is not supported, there is no loss, or
    (with `train`) the exporter folded or merged parameters of its graph signature.

    Example: `par-opt --par-read-onnx="model=tiny-gpt.onnx dims=batch=8,seq=128 train=true loss=cross_entropy"` makes
    ```
    par.variable @lm_head.weight parameter : tensor<256x128xf32> init "normal(0.02)" source {...}
    par.step @eval(%arg0: tensor<8x128xi64>, %arg1: tensor<8x128xi64>) -> tensor<f32> ...
    ```
  }];
  let options = [
    Option<"model", "model", "std::string", "", "path of the ONNX file">,
    ListOption<"dims", "dims", "std::string", "sizes of symbolic dims, symbol=size">,
    Option<"batch", "batch", "int64_t", "0", "samples of one step; 0: from dims or from the file">,
    Option<"train", "train", "bool", "false", "find or attach a loss">,
    Option<"loss", "loss", "std::string", "", "a scalar output, or cross_entropy, mse or l1 to attach">,
    Option<"output", "output", "std::string", "", "the output that the loss is attached to">,
    Option<"labels", "labels", "std::string", "\"labels\"", "name of the input that the loss is taken against">,
    Option<"smoothing", "smoothing", "double", "0", "share of all classes in every label of cross_entropy">,
    Option<"shift", "shift", "int64_t", "0", "labels are this many positions ahead">,
    Option<"allowLost", "allow-lost", "bool", "false", "train though the exporter lost parameters">,
    ListOption<"values", "values", "std::string", "inputs bound to a value, input=zeros|ones|iota|number">,
    ListOption<"tie", "tie", "std::string", "initializers that are another one, name=name">,
  ];
}

def FoldEmptyValuesPass : Pass<"par-fold-empty-values", "::mlir::ModuleOp"> {
  let summary = "makes constants of tensors without elements";
  let description = [{
    Expects: Import's step.
    Leaves: a tensor without elements is an argument that nothing uses, the read of a variable, or a constant. A
    concatenation has no operand without elements, an update of none is its operand, and an op that depends only on such
    constants is folded: a sum to 0, a maximum to the smallest number. Later phases neither shard nor slice empty
    tensors.
    Fails: never.

    Example:
    ```
    %0 = par.slice %x [0, 0] to [0, 8] by [1, 1] : tensor<4x8xf32> to tensor<0x8xf32>
    %1 = par.concat %0, %x dim 0 : (tensor<0x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = par.reduce sum %0 dims [0] : tensor<0x8xf32> to tensor<8xf32>
    ```
    becomes, `%x` in place of `%1`,
    ```
    %2 = par.constant dense<0.0> : tensor<8xf32>
    ```
  }];
}

def IgnoreCutPositionsPass : Pass<"par-ignore-cut-positions", "::mlir::ModuleOp"> {
  let summary = "extends sums over all but the last positions to all";
  let description = [{
    Expects: Import's step.
    Leaves: a slice that drops one or at most a sixteenth of the positions of a dim, at the end, is gone if all its
    users are parallel along that dim up to sums over it: they take all positions. Labels of cross entropy are padded
    with the ignored one; other summands are set to zero at the dropped positions. So a language model that shifts its
    own labels neither copies its logits nor gathers them if the sequence is sharded. The sums are the same; slices with
    other users stay.
    Fails: never.

    Example: with `%y : tensor<8x15xi64>`, the labels from position 1 on,
    ```
    %0 = par.slice %z [0, 0, 0] to [8, 15, 64] by [1, 1, 1] : tensor<8x16x64xf32> to tensor<8x15x64xf32>
    %t, %lse = par.cross_entropy %0, %y ignore -100
        : (tensor<8x15x64xf32>, tensor<8x15xi64>) -> (tensor<8x15xf32>, tensor<8x15xf32>)
    %1 = par.reduce sum %t dims [0, 1] : tensor<8x15xf32> to tensor<f32>
    ```
    becomes
    ```
    %0 = par.pad %y low [0, 0] high [0, 1] value -100 : i64 : tensor<8x15xi64> to tensor<8x16xi64>
    %t, %lse = par.cross_entropy %z, %0 ignore -100
        : (tensor<8x16x64xf32>, tensor<8x16xi64>) -> (tensor<8x16xf32>, tensor<8x16xf32>)
    %1 = par.reduce sum %t dims [0, 1] : tensor<8x16xf32> to tensor<f32>
    ```
  }];
}

def UnfoldDimsPass : Pass<"par-unfold-dims", "::mlir::ModuleOp"> {
  let summary = "gives a variable the dims that the graph splits";
  let description = [{
    Expects: Import's step.
    Leaves: a variable whose matmul is split into equal parts (a fused query-key-value weight), by slices or by a
    reshape whose new dim is sliced, has a dim for the parts. `stored` is its shape in files, and the parts are slices
    along the new dim; sharding the last dim then shards every part. Elements keep their order, so name and bytes in
    checkpoints are unchanged. A variable with other uses is unchanged.
    Fails: never.

    Example: with `%w = par.read @w : tensor<64x192xf32>`
    ```
    %0 = par.dot %x, %w contracting [1] x [0] : (tensor<8x64xf32>, tensor<64x192xf32>) -> tensor<8x192xf32>
    %1 = par.slice %0 [0, 64] to [8, 128] by [1, 1] : tensor<8x192xf32> to tensor<8x64xf32>
    ```
    becomes
    ```
    %0 = par.dot %x, %w contracting [1] x [0] : (tensor<8x64xf32>, tensor<64x3x64xf32>) -> tensor<8x3x64xf32>
    %1 = par.slice %0 [0, 1, 0] to [8, 2, 64] by [1, 1, 1] : tensor<8x3x64xf32> to tensor<8x1x64xf32>
    %2 = par.reshape %1 : tensor<8x1x64xf32> to tensor<8x64xf32>
    ```
  }];
}

def SplitMergedDimsPass : Pass<"par-split-merged-dims", "::mlir::ModuleOp"> {
  let summary = "keeps dims apart that one reshape merges and another splits again";
  let description = [{
    Expects: Import's step.
    Leaves: a reshape that merges dims, a transpose and a reshape that splits them again (heads that
    torch.nn.MultiheadAttention merges with the batch) are a reshape that merges none and one transpose. Heads can then
    be sharded without the batch. Elements are the same.
    Fails: never.

    Example:
    ```
    %0 = par.reshape %x : tensor<5x2x12xf32> to tensor<5x6x4xf32>
    %1 = par.transpose %0 [1, 0, 2] : tensor<5x6x4xf32> to tensor<6x5x4xf32>
    %2 = par.reshape %1 : tensor<6x5x4xf32> to tensor<2x3x5x4xf32>
    ```
    becomes
    ```
    %0 = par.reshape %x : tensor<5x2x12xf32> to tensor<5x2x3x4xf32>
    %1 = par.transpose %0 [1, 2, 0, 3] : tensor<5x2x3x4xf32> to tensor<2x3x5x4xf32>
    ```
  }];
}

def CarryStatePass : Pass<"par-carry-state", "::mlir::ModuleOp"> {
  let summary = "makes variables of outputs that are inputs of the next call";
  let description = [{
    Expects: Import's step.
    Leaves: for each pair output=input a variable that is `carried`, named as the input, which is read where the input
    was and written where the output was returned; neither is an argument or a result of @predict any more. It starts
    from zeros. So a cache, a recurrent state or the next token stays on the device from call to call.
    Fails: if there is no @predict, it has no such input or output, their types differ, or an output is an unchanged
    input.

    Example: `par-opt --par-carry-state="pairs=sum=before"` rewrites
    ```
    par.step @predict(%x: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
        attributes {inputs = ["x", "before"], outputs = ["y", "sum"]} {
      %0 = par.add %x, %b : tensor<4xf32>
      %1 = par.negate %0 : tensor<4xf32>
      par.return %1, %0 : tensor<4xf32>, tensor<4xf32>
    }
    ```
    to
    ```
    par.variable @before carried : tensor<4xf32>
    par.step @predict(%x: tensor<4xf32>) -> tensor<4xf32> attributes {inputs = ["x"], outputs = ["y"]} {
      %b = par.read @before batch 0 : tensor<4xf32>
      %0 = par.add %x, %b : tensor<4xf32>
      %1 = par.negate %0 : tensor<4xf32>
      par.write %0 to @before : tensor<4xf32>
      par.return %1 : tensor<4xf32>
    }
    ```
  }];
  let options = [
    ListOption<"pairs", "pairs", "std::string", "carried values, output=input">,
  ];
}

def VerifyImportPass : Pass<"par-verify-import", "::mlir::ModuleOp"> {
  let summary = "gate of Import";
  let description = [{
    Expects: the module after Import.
    Leaves: it unchanged.
    Fails: unless there is one step, @eval or @predict, on plain tensors, without stages, fragments, loops and writes
    except of buffers and carried variables; variables are of Import's kinds, unsharded and unplaced; every tensor op's
    location names an ONNX node. Warns: if @predict draws random numbers.

    Example: `par.stage @s0 <> ranks [0]` is refused: stages are Annotate's.
  }];
}

#endif
