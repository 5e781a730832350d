#ifndef PAR_KERNELS_PASSES_TD
#define PAR_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def InlineFragmentsPass : Pass<"par-inline-fragments", "::mlir::ModuleOp"> {
  let summary = "puts the bodies of local fragments in place of the ops that run them";
  let description = [{
    Expects: programs (after Schedule). Leaves: no par.exec and no fragment; in every block, one op for equal ones and
    none whose results nobody uses; a transpose that moves dims of one element alone is a reshape. Fails: where a
    par.exec names no local fragment.

    ```
    %a = par.exec @f(%x) : (tensor<4xf32>) -> tensor<4xf32>    // @f: exp
    ```
    becomes
    ```
    %a = par.exp %x : tensor<4xf32>
    ```
  }];
}

def ExpandProductsPass : Pass<"par-expand-products", "::mlir::ModuleOp"> {
  let summary = "takes composites of products apart that no library computes";
  let description = [{
    Expects: blocks of tensor ops (after par-inline-fragments). Leaves: composites whose decomposition has products only
    where the runtime has one call for all of it on the device; the products of others can be calls of their own.
    Fails: never.

    ```
    %o, %lse = par.attention %q, %k, %v scale 1.0 : (tensor<2x4x8x16xf32>, ...) -> (...)
    ```
    becomes on cuda, because the library knows attention of bf16 and f16 alone, of head dims that are multiples of 8 and
    at most 128, two par.dot and the ops of a softmax. A par.attention_grad that has a mask operand is taken apart there
    whatever its format: where the mask hides all keys of a query, lse, which the library takes as it is, does not count
    them. On a cpu attention of f32 stays, of all sizes.
  }];
  let options = [Option<"device", "device", "std::string", "\"cpu\"", "what kernels are for: cpu or cuda">];
}

def ExpandConvolutionsPass : Pass<"par-expand-convolutions", "::mlir::ModuleOp"> {
  let summary = "makes products of convolutions that no library computes";
  let description = [{
    Expects: blocks of tensor ops (after par-inline-fragments). Leaves: convolutions and their gradients only in formats
    that a library of the device has: those of float64 are products of a filter and of windows side by side, as a
    generated kernel runs through products in the order of memory, and through windows element by element.
    Fails: never.

    ```
    %2 = par.convolution %0, %1 strides [1] low [1] high [1] dilations [1]
      : (tensor<2x3x8xf64>, tensor<4x3x3xf64>) -> tensor<2x4x8xf64>
    ```
    becomes a par.patches of tensor<2x3x8x3xf64>, turned so that the windows come last, and
    ```
    %5 = par.dot %3, %4 contracting [3] x [2] batching [0, 1] x [0, 1]
      : (tensor<2x1x4x9xf64>, tensor<2x1x9x8xf64>) -> tensor<2x1x4x8xf64>
    ```
  }];
}

def SeparateStridesPass : Pass<"par-separate-strides", "::mlir::ModuleOp"> {
  let summary = "takes elements that strided windows of one element see out of convolutions";
  let description = [{
    Expects: blocks of tensor ops for cuda (after par-expand-convolutions). Leaves: convolutions and their gradients
    whose windows of one element see every element, of what a par.patches takes out or a par.fold_patches puts back: of
    the gradient with strides every engine of cuDNN takes up to 100 times as long (bench/README.md, "One GPU").
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

def ChainSumsPass : Pass<"par-chain-sums", "::mlir::ModuleOp"> {
  let summary = "adds the products of a sum one by one to what the sum's buffer holds";
  let description = [{
    Expects: blocks of tensor ops (after par-inline-fragments). Leaves: in a sum that goes back to the buffer it was
    loaded from, products and scattered sums added first, each where it is made, so that each can be accumulated in
    place; the order of additions is another one.
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

def JoinPadsPass : Pass<"par-join-pads", "::mlir::ModuleOp"> {
  let summary = "joins what a sum puts side by side";
  let description = [{
    Expects: blocks of tensor ops (after par-inline-fragments). Leaves: no sum of values that are padded with zeros so
    that they lie one behind the other along one dim and leave nothing out, which is what the gradients of slices add up
    to: they are concatenated. (Where such a value is -0, so is the result, which the sum made 0.)
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

def KeepHeadsPass : Pass<"par-keep-heads", "::mlir::ModuleOp"> {
  let summary = "keeps heads of attentions for other blocks as their calls read and write them";
  let description = [{
    Expects: blocks in which attentions are left that one call computes (after par-expand-products). Leaves: an
    attention's result that others read through one transpose in the transpose's order, where it is kept in a buffer;
    the value that queries, keys and values are moved out of in one buffer, where each had its own that was no smaller
    in all. What is another kept value under another shape has no buffer of its own. Who loads
    them moves them, which the call does on its way.
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

def AlignRowsPass : Pass<"par-align-rows", "::mlir::ModuleOp"> {
  let summary = "keeps narrow rows that a GPU's products read and write in multiples of 16 bytes";
  let description = [{
    Expects: blocks of tensor ops (after par-chain-sums), for cuda. Leaves: bf16 and f16 values whose rows are no
    multiples of 8 elements, and which products read or write, in rows of a multiple of 64 (8, where they have fewer
    than 512; those of fewer than 64 stay), where nothing else has to be copied for that: a weight gets zeros where it
    is rounded, here or once for all microbatches, or, gathered or transposed, where it is copied for products of 512
    rows and more, so that the product gives zeros behind its rows; the gradient of cross_entropy has zeros written
    behind its own; elementwise ops compute what nobody reads, and zeros where it is added up; sums and maxima in f32
    read whole rows. Others read the rows without their padding, in their place. Values in variables, communication and
    results stay as they are.
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

def WidenArithmeticPass : Pass<"par-widen-arithmetic", "::mlir::ModuleOp"> {
  let summary = "computes in f32 what bf16 and f16 values enter";
  let description = [{
    Expects: blocks of tensor ops (after par-chain-sums). Leaves: bf16 and f16 in buffers, communication, movements and
    converts alone; every other op on them computes in f32, between converts, and its result is rounded once, but
    attentions, whose library knows the narrow formats. Products,
    builtins and generated kernels need no form of their own for narrow formats, at the price of an f32 copy of what a
    library call reads. On a CPU that copy is made in front of what only reorders elements, which the call can take
    over; on a GPU, whose calls read narrow formats, behind it.
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
    Option<"device", "device", "std::string", "\"cpu\"", "what kernels are for: cpu or cuda">
  ];
}

def FormKernelsPass : Pass<"par-form-kernels", "::mlir::ModuleOp"> {
  let summary = "moves the tensor ops of blocks into kernels, and launches those";
  let description = [{
    Expects: blocks of tensor ops, loads, stores and communication (after par-inline-fragments). Leaves: no tensor op
    outside kernels. A product of f32 is a library call together with the transposes, the reshapes and the accumulation
    that the call can express, a scattered sum with what it adds to; optimizers and losses are builtins of the runtime;
    all else is generated. Constants, broadcasts and reshapes are computed anew in each kernel that reads them.
    Elementwise values that could be computed before wait for the kernel that reads them, where that keeps no bytes
    longer and nobody else waiting: what an activation's gradient needs besides what comes back to it. On a CPU
    elementwise values of 1 MiB and more also wait for the kernel that reads all that they read: an activation that
    backward computes anew for its gradient. Equal kernels are one.
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

    For cuda also: a kernel computes elementwise values for itself that take more bytes to read than what they are
    computed from, and reads and writes at most 48 tensors; products and convolutions read bf16 and f16 as they are
    kept. A convolution of such operands gives that format: where its result is read in f32, it is rounded on the way.
    An attention reads heads through slices, reshapes and transposes where rows of 16 bytes lie side by side, and writes
    its results in the order of the transpose that reads them.
  }];
  let options = [
    Option<"device", "device", "std::string", "\"cpu\"", "what kernels are for: cpu or cuda">
  ];
}

def VerifyKernelsPass : Pass<"par-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "gate: what must hold after Kernels";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: where a fragment or a par.exec is left; a block holds a tensor op; a
    kernel's `tied` does not fit its results, or ties what is of another type or tied already; a kernel "library:matmul"
    or "builtin:NAME" computes what no such call does, or its implementation is unknown.

    ```
    par.block @b { %0 = par.exp %x : tensor<4xf32> }    // error
    ```
  }];
}

#endif
