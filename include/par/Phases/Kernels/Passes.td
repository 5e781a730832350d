#ifndef PAR_KERNELS_PASSES_TD
#define PAR_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def InlineFragmentsPass : Pass<"par-inline-fragments", "::mlir::ModuleOp"> {
  let summary = "inlines local fragments";
  let description = [{
    Expects: programs (after Schedule). Leaves: no par.exec and no fragment. Equal ops of a block are merged, unused
    ops erased; a transpose that moves only dims of size 1 becomes a reshape. Fails: if a par.exec names no local
    fragment.

    ```
    %a = par.exec @f(%x) : (tensor<4xf32>) -> tensor<4xf32>    // @f: exp
    ```
    becomes
    ```
    %a = par.exp %x : tensor<4xf32>
    ```
  }];
}

def CarryInPlacePass : Pass<"par-carry-in-place", "::mlir::ModuleOp"> {
  let summary = "stores carried values to their variables where they are computed";
  let description = [{
    Expects: blocks of tensor ops (after par-inline-fragments). Leaves: a value that one run of a block stores to a
    temporary buffer, and that a later block only copies to a variable, is stored to the variable at once. Blocks
    between the two do not touch the variable. A kernel can then replace rows of a cache in its buffer. A block that is
    empty then is in no entry.
    Fails: never.

    ```
    par.block @forward {
      %0 = par.load @past : tensor<4xf32>
      %1 = par.exp %0 : tensor<4xf32>
      par.store %1 to @sum : tensor<4xf32>
    }
    par.block @write {
      %0 = par.load @sum : tensor<4xf32>
      par.store %0 to @past : tensor<4xf32>
    }
    par.entry @predict runs [@forward, @write] microbatches [0, 0]
    ```
    becomes
    ```
    par.block @forward {
      %0 = par.load @past : tensor<4xf32>
      %1 = par.exp %0 : tensor<4xf32>
      par.store %1 to @past : tensor<4xf32>
    }
    par.entry @predict runs [@forward] microbatches [0]
    ```
  }];
}

def OrderMicrobatchesPass : Pass<"par-order-microbatches", "::mlir::ModuleOp"> {
  let summary = "adds microbatches of all replicas in one order, whatever the number of replicas";
  let description = [{
    Expects: blocks of tensor ops (after par-inline-fragments). Leaves: no sum of floats over the axes `over`, but of a
    step's only microbatch; each microbatch's value is exchanged over them, so that a rank adds a part of the elements
    of all replicas' values to the sum before, and the parts are gathered after the last one. Without replicas the value
    of a microbatch is stored before it is added. Fails: at `place`, if another sum is over these axes.

    ```
    %t = par.add %s, %x : tensor<8xf32>
    par.store %t to @sum : tensor<8xf32>
    ```
    becomes with two replicas
    ```
    %p = par.all_to_all %x2 split [0] concat [0] over ["dp"] : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %t = par.add %s, %p0 : tensor<4xf32>
    %u = par.add %t, %p1 : tensor<4xf32>
    par.store %u to @sum.part : tensor<4xf32>
    ```
  }];
  let options = [ListOption<"over", "over", "std::string", "axes of replicas">,
                 Option<"place", "place", "std::string", "\"plan\"", "place of the plan (file:line:column) that asks">];
}

def ExpandMatmulsPass : Pass<"par-expand-matmuls", "::mlir::ModuleOp"> {
  let summary = "decomposes composites of matmuls that no library call computes";
  let description = [{
    Expects: blocks of tensor ops (after par-inline-fragments). Leaves: composites whose decomposition has matmuls only
    if the runtime has one call for the whole composite on the device. Matmuls of other composites can become calls of
    their own.
    Fails: never.

    ```
    %o, %lse = par.attention %q, %k, %v scale 1.0 : (tensor<2x4x8x16xf32>, ...) -> (...)
    ```
    becomes on cuda two par.dot and the ops of a softmax. The library's attention supports only bf16 and f16, with head
    dims that are multiples of 8 and at most 128. A par.attention_grad with a mask operand is decomposed there in every
    type: if the mask hides all keys of a query, lse, which the library uses as given, does not count them. On a cpu f32
    attention of every size stays.
  }];
  let options = [Option<"device", "device", "std::string", "\"cpu\"", "device of the kernels: cpu or cuda">];
}

def ExpandConvolutionsPass : Pass<"par-expand-convolutions", "::mlir::ModuleOp"> {
  let summary = "lowers convolutions without a library call to matmuls";
  let description = [{
    Expects: blocks of tensor ops (after par-inline-fragments). Leaves: convolutions and their gradients only in types
    that a library of the device supports. A float64 convolution becomes a matmul of the filter and of windows side by
    side (im2col): a generated kernel reads matmul operands in memory order, but windows element by element.
    Fails: never.

    ```
    %2 = par.convolution %0, %1 strides [1] low [1] high [1] dilations [1]
      : (tensor<2x3x8xf64>, tensor<4x3x3xf64>) -> tensor<2x4x8xf64>
    ```
    becomes a par.patches of tensor<2x3x8x3xf64>, transposed to have the windows last, and
    ```
    %5 = par.dot %3, %4 contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<2x1x4x9xf64>, tensor<2x1x9x8xf64>) -> tensor<2x1x4x8xf64>
    ```
  }];
}

def SeparateStridesPass : Pass<"par-separate-strides", "::mlir::ModuleOp"> {
  let summary = "takes the strides of 1-element windows out of convolutions";
  let description = [{
    Expects: blocks of tensor ops for cuda (after par-expand-convolutions). Leaves: convolutions with windows of one
    element, and their gradients, have stride 1. A par.patches takes the strided elements out before, or a
    par.fold_patches puts them back after. (With strides the gradient takes up to 100 times as long in every engine of
    cuDNN: bench/README.md, "One GPU".)
    Fails: never.

    ```
    %2 = par.convolution %0, %1 strides [2] low [0] high [0] dilations [1]
      : (tensor<2x3x8xf32>, tensor<4x3x1xf32>) -> tensor<2x4x4xf32>
    ```
    becomes
    ```
    %2 = par.patches %0 window [1] strides [2] low [0] high [0] dilations [1] value 0.0 : f32
      : tensor<2x3x8xf32> to tensor<2x3x4x1xf32>
    %3 = par.reshape %2 : tensor<2x3x4x1xf32> to tensor<2x3x4xf32>
    %4 = par.convolution %3, %1 strides [1] low [0] high [0] dilations [1]
      : (tensor<2x3x4xf32>, tensor<4x3x1xf32>) -> tensor<2x4x4xf32>
    ```
  }];
}

def ChannelsLastPass : Pass<"par-channels-last", "::mlir::ModuleOp"> {
  let summary = "keeps images with channels last from convolution to convolution of a prediction";
  let description = [{
    Expects: blocks of tensor ops (after par-expand-convolutions) of programs that predict and do not train, for cpu.
    Leaves: f32 convolutions of one group, or of a channel a group, stand between transposes, from channels last and to
    channels last. Elementwise ops, sums over images and max pools compute on values with channels last if an operand is
    one; other ops read a transpose of it.
    Fails: never.

    ```
    %1 = par.convolution %0, %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : (tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x8xf32>
    %2 = par.exp %1 : tensor<2x4x8x8xf32>
    ```
    becomes
    ```
    %1 = par.transpose %0 [0, 2, 3, 1] : tensor<2x3x8x8xf32> to tensor<2x8x8x3xf32>
    %2 = par.transpose %1 [0, 3, 1, 2] : tensor<2x8x8x3xf32> to tensor<2x3x8x8xf32>
    %3 = par.convolution %2, %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1]
      : (tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x8xf32>
    %4 = par.transpose %3 [0, 2, 3, 1] : tensor<2x4x8x8xf32> to tensor<2x8x8x4xf32>
    %5 = par.exp %4 : tensor<2x8x8x4xf32>
    %6 = par.transpose %5 [0, 3, 1, 2] : tensor<2x8x8x4xf32> to tensor<2x4x8x8xf32>
    ```
  }];
}

def AccumulateInPlacePass : Pass<"par-accumulate-in-place", "::mlir::ModuleOp"> {
  let summary = "adds the matmuls of a sum one by one to the sum's buffer";
  let description = [{
    Expects: blocks of tensor ops (after par-inline-fragments). Leaves: a sum that is stored to a buffer from which it
    was loaded adds matmuls and scattered sums first, each right after it is computed. Each can then accumulate in
    place. The order of additions changes.
    Fails: never.

    ```
    %2 = par.add %dot, %scattered : tensor<4x4xf32>
    %3 = par.add %accumulator, %2 : tensor<4x4xf32>
    ```
    becomes
    ```
    %2 = par.add %accumulator, %dot : tensor<4x4xf32>
    %3 = par.add %2, %scattered : tensor<4x4xf32>
    ```
  }];
}

def PadsToConcatPass : Pass<"par-pads-to-concat", "::mlir::ModuleOp"> {
  let summary = "turns a sum of disjoint pads into a concatenation";
  let description = [{
    Expects: blocks of tensor ops (after par-inline-fragments). Leaves: a sum of pads with zeros whose operands follow
    each other along one dim without gaps (gradients of slices) becomes a concatenation. (An element -0 stays -0; the
    sum gave 0.)
    Fails: never.

    ```
    %2 = par.pad %0 low [0, 0] high [0, 4] value 0.0 : f32 : tensor<2x4xf32> to tensor<2x8xf32>
    %3 = par.pad %1 low [0, 4] high [0, 0] value 0.0 : f32 : tensor<2x4xf32> to tensor<2x8xf32>
    %4 = par.add %2, %3 : tensor<2x8xf32>
    ```
    becomes
    ```
    %4 = par.concat %0, %1 dim 1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
    ```
  }];
}

def PropagateHeadLayoutsPass : Pass<"par-propagate-head-layouts", "::mlir::ModuleOp"> {
  let summary = "stores heads of attentions in the layout in which their calls read and write them";
  let description = [{
    Expects: blocks whose attentions are one call each (after par-expand-matmuls). Leaves:
    - An attention's result that other ops read through one transpose is stored transposed.
    - Queries, keys and values that are parts of one value share its buffer, if their own buffers were not smaller.
    - A stored value that is a reshape of another stored value has no buffer of its own.

    Loads are followed by the layout ops, which the call absorbs.
    Fails: never.

    ```
    %q = par.transpose %x [0, 2, 1, 3] : tensor<2x8x4x16xbf16> to tensor<2x4x8x16xbf16>
    %o, %l = par.attention %q, %k, %v scale 0.25 : ...
    par.store %q to @q : tensor<2x4x8x16xbf16>          // and in another block: %q = par.load @q
    ```
    becomes
    ```
    par.store %x to @q : tensor<2x8x4x16xbf16>
        // and in another block: %q = par.transpose (par.load @q) [0, 2, 1, 3]
    ```
  }];
}

def PadRowsPass : Pass<"par-pad-rows", "::mlir::ModuleOp"> {
  let summary = "pads bf16 and f16 rows that a GPU's matmuls read and write to multiples of 16 bytes";
  let description = [{
    Expects: blocks of tensor ops (after par-accumulate-in-place), for cuda. Leaves: bf16 and f16 values that matmuls
    read or write have rows of a multiple of 64 elements (of 8 below 512; rows of fewer than 64 stay), if no additional
    copy is needed:
    - A weight is padded with zeros where it is rounded, here or once for all microbatches. A gathered or transposed
      weight is padded in its copy for matmuls of 512 rows and more. The matmul's result then has zeros after its rows.
    - The gradient of cross_entropy writes zeros after its rows.
    - Elementwise ops compute the padding, too: unused, or zero if it is summed.
    - Sums and maxima in f32 read whole rows.

    Other ops read a slice without the padding, in place. Variables, communicated values and results are not padded.
    Fails: never.

    ```
    %1 = par.convert %w : tensor<97x32xf32> to tensor<97x32xbf16>
    %2 = par.dot %x, %1 contracting [1] x [1] : (tensor<8x32xbf16>, tensor<97x32xbf16>) -> tensor<8x97xbf16>
    %3, %4 = par.cross_entropy %2, %y ignore -100 : ...
    ```
    becomes
    ```
    %0 = par.pad %w low [0, 0] high [7, 0] value 0.0 : f32 : tensor<97x32xf32> to tensor<104x32xf32>
    %1 = par.convert %0 : tensor<104x32xf32> to tensor<104x32xbf16>
    %2 = par.dot %x, %1 contracting [1] x [1] : (tensor<8x32xbf16>, tensor<104x32xbf16>) -> tensor<8x104xbf16>
    %5 = par.slice %2 [0, 0] to [8, 97] by [1, 1] : tensor<8x104xbf16> to tensor<8x97xbf16>
    %3, %4 = par.cross_entropy %5, %y ignore -100 : ...
    ```
  }];
}

def PromoteToF32Pass : Pass<"par-promote-to-f32", "::mlir::ModuleOp"> {
  let summary = "promotes arithmetic on bf16 and f16 values to f32";
  let description = [{
    Expects: blocks of tensor ops (after par-accumulate-in-place). Leaves: bf16 and f16 only in buffers, communication,
    layout ops, converts and attentions, whose library supports them. Every other op computes in f32, between converts,
    and its result is rounded once. Matmuls, builtins and generated kernels need no 16-bit variants; the price is an f32
    copy of a library call's operands. On a CPU the convert goes before ops that only reorder elements, which the call
    can absorb. On a GPU, whose calls read bf16 and f16, it goes after them.
    Fails: never.

    ```
    %1 = par.exp %0 : tensor<4xbf16>
    ```
    becomes
    ```
    %2 = par.convert %0 : tensor<4xbf16> to tensor<4xf32>
    %3 = par.exp %2 : tensor<4xf32>
    %1 = par.convert %3 : tensor<4xf32> to tensor<4xbf16>
    ```
  }];
  let options = [
    Option<"device", "device", "std::string", "\"cpu\"", "device of the kernels: cpu or cuda">
  ];
}

def FormKernelsPass : Pass<"par-form-kernels", "::mlir::ModuleOp"> {
  let summary = "outlines the tensor ops of blocks into kernels, and launches those";
  let description = [{
    Expects: blocks of tensor ops, loads, stores and communication (after par-inline-fragments). Leaves: no tensor op
    outside kernels. Equal kernels are merged.
    - An f32 matmul is a library call, with the transposes, the reshapes and the accumulation that the call can express.
    - Optimizers, losses and scattered sums, these with their accumulator, are builtins of the runtime.
    - All other kernels are generated. Each kernel recomputes the constants, broadcasts and reshapes that it reads.
    - Elementwise values are delayed until the kernel that reads them, if this delays no other reader and no bytes live
      longer: an activation's derivative joins the gradient that comes back to it. On a CPU elementwise values of 1 MiB
      and more are also delayed until a kernel that reads the same operands: an activation recomputed in backward joins
      its gradient.

    Fails: never.

    ```
    %0 = par.dot %dy, %x contracting [0] x [0] : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %1 = par.load @sum : tensor<4x4xf32>
    %2 = par.add %1, %0 : tensor<4x4xf32>
    par.store %2 to @sum : tensor<4x4xf32>
    ```
    becomes
    ```
    %1 = par.load @sum : tensor<4x4xf32>
    %2 = par.launch @dot.0(%dy, %x, %1) : (...) -> tensor<4x4xf32>    // library:matmul, tied = [2]
    par.store %2 to @sum : tensor<4x4xf32>
    ```

    For cuda also: a kernel recomputes elementwise values whose operands take fewer bytes to read, and reads and writes
    at most 48 tensors. Matmuls and convolutions read bf16 and f16 without a convert. A convolution of such operands
    gives that type: its result is rounded even if it is used in f32. An attention reads heads through slices, reshapes
    and transposes if rows of 16 bytes are contiguous, and writes its results in the order of the transpose that reads
    them.
  }];
  let options = [
    Option<"device", "device", "std::string", "\"cpu\"", "device of the kernels: cpu or cuda">
  ];
}

def VerifyKernelsPass : Pass<"par-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "gate after Kernels: tensor ops are only in kernels";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails if:
    - a fragment or a par.exec is left, or a block has a tensor op;
    - a kernel's `tied` does not fit its results, or ties an argument of another type, or one twice;
    - no call computes a kernel "library:matmul" or "builtin:NAME", or its implementation is unknown.

    ```
    par.block @b { %0 = par.exp %x : tensor<4xf32> }    // error
    ```
  }];
}

#endif
