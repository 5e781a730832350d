"""Arguments and results of forward that are no plain tensors: lists, tuples, dicts, dataclasses, *args and constants.

A file's inputs and outputs are tensors with names: `xs.0`, `batch.tokens`. While a module is exported its forward takes
these one by one and puts the values together as the module's own wants them; what is no tensor is a constant of the
file.
"""
import collections.abc
import contextlib
import copy
import dataclasses
import enum
import inspect
import types

CONSTANTS = (bool, int, float, complex, str, bytes, type(None), enum.Enum)


def is_constant(torch, value):
    """Whether a value without tensors stands in the file as what it is in the example."""
    return isinstance(value, (*CONSTANTS, torch.dtype, torch.device))


def parts(value):
    """(key, item) of a container in its order, keys as text; None of what is none."""
    if isinstance(value, collections.abc.Mapping):
        return [(str(key), item) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", None) or map(str, range(len(value)))
        return list(zip(names, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return None


def leaves(torch, name, value):
    """(name, tensor or constant or what cannot be exported) of all that a value holds."""
    inside = None if isinstance(value, torch.Tensor) else parts(value)
    if inside is None:
        return [(name, value)]
    return [leaf for key, item in inside for leaf in leaves(torch, f"{name}.{key}" if name else key, item)]


def is_known(torch, value, tensors):
    """Whether torch.export takes `value` apart into these tensors and nothing else. It knows only registered
    dataclasses."""
    from torch.utils._pytree import tree_leaves
    leaves = tree_leaves(value)
    return len(leaves) == len(tensors) and all(leaf is tensor for leaf, tensor in zip(leaves, tensors))


def left_out(torch, value):
    """Results of forward that no file holds, such as a cache: names and types."""
    return [f"{name} ({type(item).__name__})" if name else type(item).__name__
            for name, item in leaves(torch, "", value)
            if not isinstance(item, torch.Tensor) and not is_constant(torch, item)]


def rebuilt(torch, value, tensors):
    """`value` with the next of `tensors`, an iterator, in the place of each of its own."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    inside = parts(value)
    if inside is None:
        return value
    items = [rebuilt(torch, item, tensors) for _, item in inside]
    if isinstance(value, (list, tuple)):
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    made = copy.copy(value)
    if isinstance(value, collections.abc.Mapping):
        for key, item in zip(value, items):
            made[key] = item
    else:
        for field, item in zip(dataclasses.fields(value), items):
            object.__setattr__(made, field.name, item)  # frozen ones too
    return made


def identifiers(names):
    """Names of arguments for these of inputs."""
    found = []
    for name in names:
        plain = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
        plain = plain if plain.isidentifier() and plain not in ("self",) else f"input_{plain}"
        while plain in found:
            plain += "_"
        found.append(plain)
    return found


def results(torch, value):
    """Names and tensors of what forward returns, in the order of its outputs. A scalar that stands by itself is the
    loss."""
    if isinstance(value, torch.Tensor):
        return (["loss"] if value.ndim == 0 else ["output"]), [value]
    named = isinstance(value, collections.abc.Mapping) or dataclasses.is_dataclass(value) or hasattr(value, "_fields")
    found = [(name, item) for name, item in leaves(torch, "", value) if isinstance(item, torch.Tensor)]
    if named:
        return [name for name, _ in found], [item for _, item in found]
    names, others = [], 0
    for _, item in found:
        if item.ndim == 0 and "loss" not in names:
            names.append("loss")
            continue
        names.append("output" if others == 0 else f"output.{others}")
        others += 1
    return names, [item for _, item in found]


def held(module, given, tensors):
    """Which of `tensors`, results of forward, are no values of their own: an input, a parameter, an earlier result. The
    exporter would call that by the result's name."""
    known = {id(tensor) for tensor in (*given, *module.parameters(), *module.buffers())}
    found = []
    for tensor in tensors:
        found.append(id(tensor) in known)
        known.add(id(tensor))
    return found


@contextlib.contextmanager
def flat(torch, module, arguments):
    """Within it, forward of `module` takes the tensors of `arguments` (arguments.Arguments) and returns a tuple of
    tensors."""
    own, had = module.forward, vars(module).get("forward")
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in ("self", *identifiers(arguments.names))])

    def forward(*args, **kwargs):
        _, *tensors = signature.bind(*args, **kwargs).args
        positional, named = arguments.call(tensors)
        _, found = results(torch, own(*positional, **named))
        return tuple(value.clone() if copied else value for value, copied in zip(found, held(module, tensors, found)))

    forward.__signature__ = signature
    module.forward = types.MethodType(forward, module)
    try:
        yield
    finally:
        del module.forward
        if had is not None:
            module.forward = had
