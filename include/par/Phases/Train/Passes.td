#ifndef PAR_TRAIN_PASSES_TD
#define PAR_TRAIN_PASSES_TD

include "mlir/Pass/PassBase.td"

def WidenMastersPass : Pass<"par-widen-masters", "::mlir::ModuleOp"> {
  let summary = "keeps parameters of bf16 and fp16 as f32 masters, which each use rounds";
  let description = [{
    Expects: forward steps on one device (before -par-mix-precision), whose parameters have the types that the model's
    file has. Leaves: every `parameter` of bf16 or f16 as one of f32, so that its gradient, its states and its updates
    are f32. Each use reads it rounded to the file's type; looked-up rows are rounded after the lookup. `source` keeps
    the file's type as `dtype`. Frozen parameters and buffers stay as they are.
    Fails: never.

    Example: with `par.variable @w parameter : tensor<4x2xbf16>`
    ```
    %w = par.read @w : tensor<4x2xbf16>
    %y = par.dot %x, %w contracting [1] x [0] : (tensor<8x4xbf16>, tensor<4x2xbf16>) -> tensor<8x2xbf16>
    ```
    becomes, with @w of f32,
    ```
    %w = par.read @w : tensor<4x2xf32>
    %0 = par.convert %w : tensor<4x2xf32> to tensor<4x2xbf16>
    %y = par.dot %x, %0 contracting [1] x [0] : (tensor<8x4xbf16>, tensor<4x2xbf16>) -> tensor<8x2xbf16>
    ```
  }];
}

def MixPrecisionPass : Pass<"par-mix-precision", "::mlir::ModuleOp"> {
  let summary = "computes matmuls and activations in bf16 or fp16, and keeps variables, sums and the loss in f32";
  let description = [{
    Expects: forward steps on one device (before -par-differentiate). Leaves: variables, inputs, outputs and written
    values as they were. An f32 matmul takes and gives the narrow format. Elementwise and layout ops follow their
    operands, and are f32 as soon as one of them is; sums are f32; composites take the narrow format and compute in f32
    where they define it (statistics, the loss). Parameters are converted at each use, so that their gradients are f32;
    constants take the format of the other operands. A number that the narrow format cannot represent is not rounded:
    its op is computed in f32 and its result is rounded. Values of other float types stay as they are.
    Fails: on another format than bf16 and fp16.

    Example: `%y = par.dot %x, %w contracting [1] x [0]` of f32 becomes
    ```
    %0 = par.convert %x : tensor<8x4xf32> to tensor<8x4xbf16>
    %1 = par.convert %w : tensor<4x2xf32> to tensor<4x2xbf16>
    %y = par.dot %0, %1 contracting [1] x [0] : (tensor<8x4xbf16>, tensor<4x2xbf16>) -> tensor<8x2xbf16>
    ```
  }];
  let options = [
    Option<"compute", "compute", "std::string", "\"bf16\"", "bf16 or fp16">,
    ListOption<"keep", "keep", "std::string", "parameters that stay f32, with their matmuls">,
  ];
}

def SafeSoftmaxPass : Pass<"par-safe-softmax", "::mlir::ModuleOp"> {
  let summary = "makes one op of a softmax and the 0 that replaces its NaN";
  let description = [{
    Expects: forward steps (before -par-differentiate). Leaves: `par.softmax ... safe` where a softmax is read by a test
    for NaN and by the select that puts 0 in place of NaN, and by nothing else. Exporters write PyTorch's attention so,
    for queries that may look at no key. The values are the same. The gradient of a row of NaN is 0, as PyTorch's is,
    where that of the three ops is NaN; and it needs one tensor of probabilities, not one with NaN and one without.
    Fails: never.

    Example:
    ```
    %p = par.softmax %s dim 3 : tensor<2x4x8x8xf32>
    %nan = par.is_nan %p : tensor<2x4x8x8xf32>
    %q = par.select %nan, %zero, %p : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
    ```
    becomes `%q = par.softmax %s dim 3 safe : tensor<2x4x8x8xf32>`.
  }];
}

def FuseAttentionPass : Pass<"par-fuse-attention", "::mlir::ModuleOp"> {
  let summary = "fuses the matmuls and the softmax of attention into one op";
  let description = [{
    Expects: forward steps on one device, after -par-mix-precision (before -par-differentiate). Leaves: par.attention in
    place of a matmul of queries and keys whose only user is a softmax whose only user is a matmul with values, all of
    bf16 or f16 on cuda, of f32 on a cpu. There may be factors before or after the first matmul, a causal mask, or an
    added mask of finite numbers that depends on no parameter; the softmax may be safe or not. Keys and values repeated
    for groups of heads are taken before the repetition. All other matmuls stay, also those of sizes that no library
    supports.
    Fails: never.

    Example:
    ```
    %s = par.dot %q, %k contracting [3] x [3] batching [0, 1] x [0, 1] : (...) -> tensor<2x4x8x8xbf16>
    %p = par.softmax %s dim 3 : tensor<2x4x8x8xbf16>
    %o = par.dot %p, %v contracting [3] x [2] batching [0, 1] x [0, 1] : (...) -> tensor<2x4x8x16xbf16>
    ```
    becomes
    ```
    %o, %lse = par.attention %q, %k, %v scale 1.0 : (...) -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>)
    ```
  }];
  let options = [Option<"device", "device", "std::string", "\"cuda\"", "cpu or cuda">];
}

def DifferentiatePass : Pass<"par-differentiate", "::mlir::ModuleOp"> {
  let summary = "makes @train of @eval: forward, then backward by reverse mode";
  let description = [{
    Expects: `@eval` on one device with the whole batch; its first result is the loss, a float scalar. Without `@eval`
    there is nothing to train and the module is unchanged.
    Leaves: `@eval`, and `@train` with the same inputs, which returns the loss and the other scalars of `@eval`. Selects
    by the variable `@par.training` are folded, false in `@eval` and true in `@train`, and the variable is gone. The
    backward part begins at the `par.cotangent` of the loss and ends in one `par.gradient` for each parameter that the
    loss depends on, in the order of the variables. Ops built for a forward op have its stage and its location; sums of
    cotangents of one value have no stage. Ops that only other results of `@eval` needed are gone. Buffers that `@eval`
    writes (moving statistics) are written only in `@train`.
    Fails: if the loss is no float scalar, depends on no parameter, or reaches one through an op that cannot be
    differentiated. A parameter that gets no gradient is a warning.

    Example: the forward part `%l = reduce sum (%x * %w)` gets
    ```
    %one = par.constant dense<1.0> : tensor<f32>
    %ct = par.cotangent %l, %one : tensor<f32>
    %b = par.broadcast_in_dim %ct dims [] : tensor<f32> to tensor<4xf32>
    %d = par.multiply %b, %x : tensor<4xf32>
    %g = par.gradient %d of @w : tensor<4xf32>
    ```
  }];
}

def WidenSumsPass : Pass<"par-widen-sums", "::mlir::ModuleOp"> {
  let summary = "widens the result of matmuls that are converted to a wider format anyway";
  let description = [{
    Expects: steps after -par-mix-precision and -par-differentiate. Leaves: a matmul of narrow operands whose only user
    is a widening convert, perhaps through layout ops, with the wide result, so that a weight's gradient is never
    rounded; every other widening convert, and every convert of a variable, once for each use, so that backward saves
    the narrow value and widens it again.
    Fails: never.

    Example:
    ```
    %0 = par.dot %x, %ct contracting [0] x [0] : (tensor<8x4xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
    %1 = par.convert %0 : tensor<4x2xbf16> to tensor<4x2xf32>
    ```
    becomes
    ```
    %1 = par.dot %x, %ct contracting [0] x [0] : (tensor<8x4xbf16>, tensor<8x2xbf16>) -> tensor<4x2xf32>
    ```
  }];
}

def RoundParametersPass : Pass<"par-round-parameters", "::mlir::ModuleOp"> {
  let summary = "rounds a parameter before its elements are moved, if a step needs them rounded only";
  let description = [{
    Expects: steps on one device whose gradients are differentiated (before -par-add-optimizer reads parameters to
    update them). Leaves: an f32 parameter of at least `min-size` elements, which every step rounds at each use after
    layout ops and lookups, rounded first and moved then. The elements are the same bits. The rounded parameter is then
    all that a step needs of it before the update, so that ranks may keep shards of f32 masters and gather bf16. A
    parameter with a use in f32 stays as it is. Gradients stay as they are: they have been differentiated before.
    Fails: never.

    Example: a looked-up table
    ```
    %w = par.read @wte : tensor<50x8xf32>
    %e = par.take %w, %ids dim 0 : (tensor<50x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
    %h = par.convert %e : tensor<6x8xf32> to tensor<6x8xbf16>
    ```
    becomes
    ```
    %w = par.read @wte : tensor<50x8xf32>
    %0 = par.convert %w : tensor<50x8xf32> to tensor<50x8xbf16>
    %h = par.take %0, %ids dim 0 : (tensor<50x8xbf16>, tensor<6xi64>) -> tensor<6x8xbf16>
    ```
  }];
  let options = [Option<"minSize", "min-size", "int64_t", "0", "parameters of fewer elements stay as they are">];
}

def SparseGradientsPass : Pass<"par-sparse-gradients", "::mlir::ModuleOp"> {
  let summary = "keeps the gradients of tables as the rows that a step looks up";
  let description = [{
    Expects: `@train` after -par-differentiate. Leaves: the gradient of each of the `tables` with one row for each
    lookup of the whole batch. Cotangents of equal indices are added up, in the batch's order, in the row of the first
    of them; the rows of the others have zeros and the row number -1. The rows come from all microbatches and ranks,
    since no earlier op adds up over the batch.
    Fails: if anything but lookups along dim 0 adds to such a gradient, or if a table is no parameter.

    Example: `%g = par.gradient (par.index_add %ct, %ids dim 0 size 50) of @w` becomes
    ```
    %c = par.collect %ct dims 1 : tensor<6x8xf32>
    %i = par.collect %ids dims 1 : tensor<6xi64>
    ... %first: where the same index is met first; %named: the index there, -1 elsewhere
    %s = par.index_add %c, %first dim 0 size 6 : tensor<6x8xf32>, tensor<6xi64> to tensor<6x8xf32>
    %g = par.gradient %s rows %named of @w : tensor<6x8xf32>, tensor<6xi64>
    ```
  }];
  let options = [ListOption<"tables", "tables", "std::string", "parameters whose gradients are kept so">];
}

def AddOptimizerPass : Pass<"par-add-optimizer", "::mlir::ModuleOp"> {
  let summary = "updates every parameter that has a gradient";
  let description = [{
    Expects: `@train` after -par-differentiate.
    Leaves: one update op a gradient, of the kind that its parameter has, whose result is written to the parameter; the
    states that the op names as variables of kind state, `@w.m`, shaped, stored and sharded as the parameter; the
    learning rate in the hyperparameter variable `@lr`; if an op counts steps, the number of the step, from 1, in the
    counter `@step`. Formulas are PyTorch's. A gradient of rows updates only these, and their states. With `states=bf16`
    states of f32 are rounded when they are written, and widened when they are read: the update computes in f32.
    Fails: on an unknown kind, another format of states, a setting that the op does not take, a setting of a variable
    that is no parameter, or a name that is taken.

    Example: with `kind=adamw`
    ```
    %w2, %m2, %v2 = par.adamw %w, %g, %m, %v, %step, %lr betas 0.9, 0.999 epsilon 1.0e-8 decay 0.01 : ...
    par.write %w2 to @w : tensor<4xf32>
    ```
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"sgd\"", "an op with OptimizerOpInterface, without its dialect">,
    Option<"lr", "lr", "double", "0.001", "initial value of @lr">,
    ListOption<"settings", "settings", "std::string",
               "attributes of the updates other than their defaults, name=number">,
    Option<"decay", "decay", "double", "0", "weight decay">,
    ListOption<"lrScales", "lr-scales", "std::string", "learning rate as a factor of @lr, parameter=factor">,
    ListOption<"decays", "decays", "std::string", "weight decay of one parameter, parameter=decay">,
    ListOption<"kinds", "kinds", "std::string",
               "of single parameters, parameter=kind; another one has its own defaults">,
    ListOption<"ownSettings", "own-settings", "std::string",
               "an attribute of one parameter's update, parameter:attribute=number">,
    Option<"states", "states", "std::string", "\"f32\"", "f32 or bf16: states of f32 parameters between steps">,
  ];
}

def AdvanceCountersPass : Pass<"par-advance-counters", "::mlir::ModuleOp"> {
  let summary = "counts the steps in every counter that the model reads";
  let description = [{
    Expects: steps after -par-differentiate, in which a model's random ops read a counter that no step writes.
    Leaves: in `@train` the counter is one more than it was, for every use, and is written back; in every other step it
    is 0, which is how dropout knows that nothing is trained. Counters that `@train` writes stay as they are.
    Fails: never.

    ```
    %n = par.read @draws : tensor<f32>
    ```
    becomes in `@train`
    ```
    %0 = par.read @draws : tensor<f32>
    %n = par.add %0, %one : tensor<f32>
    par.write %n to @draws : tensor<f32>
    ```
    and in `@eval` the constant 0.
  }];
}

def ClipGradientsPass : Pass<"par-clip-gradients", "::mlir::ModuleOp"> {
  let summary = "returns the norm of all gradients, and clips by it";
  let description = [{
    Expects: `@train` after -par-add-optimizer.
    Leaves: the result "grad_norm" of `@train`, the root of the sum of squares of all gradients; one scalar a parameter
    is combined by `par.stage_all_reduce`, so that Split can distribute it over stages. With `clip` above 0 updates take
    each gradient times min(1, clip / (norm + 1e-6)) (torch.nn.utils.clip_grad_norm_); the threshold is the
    hyperparameter variable `@clip`. With `value` above 0 they take each element clamped to -`@clip` and `@clip`
    (torch.nn.utils.clip_grad_value_), and the norm stays that of the unclipped gradients. Without `norm` there is no
    result, unless `clip` needs it. With `loss` the norm is infinite if the loss is not finite.
    Fails: on a negative threshold, on both, or if `@clip` is taken.

    Example: two gradients become
    ```
    %s:2 = par.stage_all_reduce sum %q0, %q1 : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %n0 = par.sqrt %s#0 : tensor<f32>
    ```
  }];
  let options = [
    Option<"clip", "clip", "double", "0", "largest norm; 0: gradients are not clipped by it">,
    Option<"value", "value", "double", "0", "largest element; 0: gradients are not clipped by it">,
    Option<"norm", "norm", "bool", "true", "return the norm">,
    Option<"loss", "loss", "bool", "false", "a loss that is not finite makes the norm infinite">,
  ];
}

def ScaleLossPass : Pass<"par-scale-loss", "::mlir::ModuleOp"> {
  let summary = "multiplies the loss's cotangent by @loss_scale, and gradients by its inverse";
  let description = [{
    Expects: `@train` after -par-add-optimizer. Leaves: the counters `@loss_scale`, from `initial`
    on, and `@good_steps`; the cotangent's seed is the scale, so that small cotangents survive a narrow format. A
    gradient stays the scaled sum; its users read it multiplied by 1 / scale, in f32.
    Fails: on a scale that is not positive, or if a name is taken.

    Example:
    ```
    %s = par.read @loss_scale : tensor<f32>
    %ct = par.cotangent %l, %s : tensor<f32>
    ...
    %g = par.gradient %d of @w : tensor<4xf32>
    %i = par.divide %one, %s : tensor<f32>
    %u = par.multiply %g, (%i at every element) : tensor<4xf32>
    ```
  }];
  let options = [Option<"initial", "initial", "double", "65536", "loss scale before the first step">];
}

def SkipOverflowPass : Pass<"par-skip-overflow", "::mlir::ModuleOp"> {
  let summary = "updates nothing in a step whose gradients are not finite, and adapts the loss scale";
  let description = [{
    Expects: `@train` after -par-scale-loss and -par-clip-gradients. Leaves: every written value is a select between the
    new one, if the norm of all gradients is finite, and the old one; the counter of steps does not advance either.
    Buffers are excepted, since forward writes them before there is a gradient. With `growth` above 0 `@loss_scale`
    halves after a bad step and doubles after that many consecutive good ones (Micikevicius et al. 2018, as PyTorch's
    GradScaler), and is the step's result "loss_scale". With `count` the counter `@skipped_steps` counts bad steps.
    Fails: on a negative growth, if `@skipped_steps` is taken, or without the norm of -par-clip-gradients.

    Example:
    ```
    %ok = par.is_finite %squares : tensor<f32>
    %w2 = par.select (%ok at every element), %w1, %w : tensor<4xi1>, tensor<4xf32>
    par.write %w2 to @w : tensor<4xf32>
    ```
  }];
  let options = [
    Option<"growth", "growth", "int64_t", "2000", "good steps until the scale doubles; 0: it stays">,
    Option<"count", "count", "bool", "false", "count the steps that wrote nothing">,
  ];
}

def AverageWeightsPass : Pass<"par-average-weights", "::mlir::ModuleOp"> {
  let summary = "averages the weights after each step";
  let description = [{
    Expects: `@train` after -par-add-optimizer. Leaves: a state `@P.ema` in f32 (or the wider format of the parameter)
    for each parameter @P that is updated, which begins as the parameter, and the counter `@averages`. The first step
    copies the new weights, and each later one writes a + (1 - decay) (w - a), with the average a and the new weight w
    (torch.optim.swa_utils.get_ema_multi_avg_fn). With `warmup` the decay is at most (1 + t) / (10 + t) after t steps.
    With `eval` all other steps read the averages in place of the weights.
    Fails: on a decay that is not from 0 to 1, or if a name is taken.

    Example:
    ```
    %a = par.read @w.ema : tensor<4xf32>
    %d = par.subtract %w2, %a : tensor<4xf32>
    %s = par.multiply (%share at every element), %d : tensor<4xf32>
    %a2 = par.add %a, %s : tensor<4xf32>
    par.write %a2 to @w.ema : tensor<4xf32>
    ```
  }];
  let options = [
    Option<"decay", "decay", "double", "0.999", "share of the average that a step keeps">,
    Option<"warmup", "warmup", "bool", "false", "the decay is at most (1 + t) / (10 + t)">,
    Option<"eval", "eval", "bool", "false", "other steps read the averages">,
  ];
}

def DecomposeOpsPass : Pass<"par-decompose-ops", "::mlir::ModuleOp"> {
  let summary = "decomposes every composite";
  let description = [{
    Expects: steps or fragments of tensor ops.
    Leaves: no op that has a decomposition. The compiler does not run this pass; tests run it before and after Train,
    because both results must equal the composites'.
    Fails: never.

    Example: `par.softmax %0 dim 1` becomes a maximum, a difference, an exponential, a sum and a quotient.
  }];
}

def VerifyTrainPass : Pass<"par-verify-train", "::mlir::ModuleOp"> {
  let summary = "gate of Train";
  let description = [{
    Expects: the module after Train.
    Leaves: it unchanged.
    Fails: unless there is `@train` beside `@eval`, on plain tensors; it has one `par.cotangent`; each of its gradients
    depends on that, belongs to a parameter, and is the only one of it; exactly the parameters with a gradient, their
    states, counters and moving buffers are written, once each, and a parameter's new value depends on its gradient.
    Other steps write nothing and have no markers.

    Example: a module with only `@eval`, as Annotate leaves it, is refused.
  }];
}

#endif
