"""Hooks on gradients: PyTorch runs them in backward, and a file of forward holds none of them."""
import collections
import contextlib
import os
import sys
import warnings


def found(torch, module):
    """Names of parameters and modules with hooks that change or see gradients."""
    places = [name for name, parameter in module.named_parameters()
              if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None)]
    places += [name or type(module).__name__ for name, part in module.named_modules()
               if part._backward_hooks or part._backward_pre_hooks]
    return places


def held(part):
    """The hooks of a module, with the dicts that hold them."""
    kinds = ("_hooks", "_hooks_with_kwargs", "_hooks_always_called")
    return [(value, dict(value)) for name, value in vars(part).items()
            if name.endswith(kinds) and isinstance(value, dict)]


def put_back(kept):
    """Removes hooks that forward added, as those of transformers, which adds them in the first call and notes that it
    did."""
    for now, then in kept:
        now.clear()
        now.update(then)


@contextlib.contextmanager
def watching(torch):
    """While forward runs: the lines that hang a hook on a tensor of it. They hang none."""
    lines, register = [], torch.Tensor.register_hook

    def registered(tensor, hook):
        caller = sys._getframe(1)
        line = f"{os.path.basename(caller.f_code.co_filename)}:{caller.f_lineno}"
        if line not in lines:
            lines.append(line)
        return torch.utils.hooks.RemovableHandle(collections.OrderedDict())

    torch.Tensor.register_hook = registered
    try:
        yield lines
    finally:
        torch.Tensor.register_hook = register


@contextlib.contextmanager
def differentiable(torch):
    """Gradients are on, as forward may ask before it hangs hooks, and nothing is kept for them: a forward that
    differentiates (autograd.grad, torch's scan) fails within."""
    nothing = torch.autograd.graph.saved_tensors_hooks(lambda tensor: None, lambda kept: None)
    with torch.enable_grad(), nothing, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Error detected in")  # where it fails
        yield


def warning(places, some):
    return (f"hooks on gradients ({some(places)}) are not in the file: Par trains with the gradients that autograd "
            f"gives "
            f"without them")
