#ifndef PAR_TRAIN_PASSES_TD
#define PAR_TRAIN_PASSES_TD

include "mlir/Pass/PassBase.td"

def DifferentiatePass : Pass<"par-differentiate", "::mlir::ModuleOp"> {
  let summary = "makes @train of @eval: forward, then backward by reverse mode";
  let description = [{
    Expects: `@eval` on one device with the whole batch; its first result is the loss, a float scalar. Without `@eval`
    there is nothing to train and the module is left alone.
    Leaves: `@eval` unchanged, and `@train` with the same inputs, which returns the loss alone. Its backward part begins
    at the `par.cotangent` of the loss and ends in one `par.gradient` for each parameter that the loss depends on, in
    the order of the variables. Ops built for a forward op have its stage and its location; sums of cotangents of one
    value have no stage. What only other results of `@eval` needed is gone. Buffers that `@eval` writes (moving
    statistics) are written in `@train` alone.
    Fails: where the loss is no float scalar, depends on no parameter, or reaches one through an op that cannot be
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

def AddOptimizerPass : Pass<"par-add-optimizer", "::mlir::ModuleOp"> {
  let summary = "updates every parameter that has a gradient";
  let description = [{
    Expects: `@train` after -par-differentiate.
    Leaves: one update op a gradient, whose result is written to the parameter; the optimizer's state as variables
    `@w.m`, `@w.v` of kind state, shaped, stored and sharded as the parameter; the learning rate in the hyper variable
    `@lr`; with momentum and adamw the number of the step, from 1, in the counter `@step`. Formulas are PyTorch's.
    Fails: on an unknown kind, a setting for what is no parameter, or a name that is taken.

    Example: with `kind=adamw`
    ```
    %w2, %m2, %v2 = par.adamw %w, %g, %m, %v, %step, %lr betas 0.9, 0.999 epsilon 1.0e-8 decay 0.01 : ...
    par.write %w2 to @w : tensor<4xf32>
    ```
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"sgd\"", "sgd, momentum or adamw">,
    Option<"lr", "lr", "double", "0.001", "initial value of @lr">,
    Option<"momentum", "momentum", "double", "0.9", "of momentum">,
    Option<"nesterov", "nesterov", "bool", "false", "of momentum">,
    Option<"beta1", "beta1", "double", "0.9", "of adamw">,
    Option<"beta2", "beta2", "double", "0.999", "of adamw">,
    Option<"epsilon", "epsilon", "double", "1e-8", "of adamw">,
    Option<"decay", "decay", "double", "0", "weight decay">,
    ListOption<"lrScales", "lr-scales", "std::string", "learning rate as a factor of @lr, parameter=factor">,
    ListOption<"decays", "decays", "std::string", "weight decay of one parameter, parameter=decay">,
  ];
}

def ClipGradientsPass : Pass<"par-clip-gradients", "::mlir::ModuleOp"> {
  let summary = "returns the norm of all gradients, and clips by it";
  let description = [{
    Expects: `@train` after -par-add-optimizer.
    Leaves: the result "grad_norm" of `@train`, the root of the sum of squares of all gradients; one scalar a parameter
    is combined by `par.stage_reduce`, so that Split can cut it. With `clip` above 0 updates take each gradient times
    min(1, clip / (norm + 1e-6)) (torch.nn.utils.clip_grad_norm_); the threshold is the hyper variable `@clip`.
    Fails: on a negative threshold, or where `@clip` is taken.

    Example: two gradients become
    ```
    %s:2 = par.stage_reduce sum %q0, %q1 : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %n0 = par.sqrt %s#0 : tensor<f32>
    ```
  }];
  let options = [Option<"clip", "clip", "double", "0", "largest norm; 0: gradients are not clipped">];
}

def DecomposePass : Pass<"par-decompose", "::mlir::ModuleOp"> {
  let summary = "takes every composite apart";
  let description = [{
    Expects: steps or fragments of tensor ops.
    Leaves: no op that has a decomposition. Compiling does without this pass; tests run it before Train and after it,
    because both must mean what the composites mean.
    Fails: never.

    Example: `par.softmax %0 dim 1` becomes a maximum, a difference, an exponential, a sum and a quotient.
  }];
}

def VerifyTrainPass : Pass<"par-verify-train", "::mlir::ModuleOp"> {
  let summary = "gate of Train";
  let description = [{
    Expects: what Train leaves.
    Leaves: it unchanged.
    Fails: unless there is `@train` beside `@eval`, on plain tensors; it has one `par.cotangent`; each of its gradients
    depends on that, belongs to a parameter, and is the only one of it; exactly the parameters with a gradient, their
    states, counters and moving buffers are written, once each, and a parameter's new value depends on its gradient. Other steps
    write nothing and have no markers.

    Example: a module with `@eval` alone, as Annotate leaves it, is refused.
  }];
}

#endif
