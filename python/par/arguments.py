"""The example inputs of par.export as forward takes them, and the tensors among them under their names."""
import collections.abc
import difflib
import inspect

from . import nested
from .errors import Error


class Arguments:
    """The arguments of forward.

    names: of the tensors, in forward's order: `x`, `xs.0` of a list or of *xs, `batch.tokens` of a dict or dataclass.
    values: the tensors. Everything else is a constant.
    """

    def __init__(self, torch, module, inputs):
        self.torch = torch
        self.positional, self.named = _bound(module, inputs)
        self.names, self.values = [], []
        for name, value in self._leaves():
            if isinstance(value, torch.Tensor):
                self.names.append(name)
                self.values.append(_apart(value))
            elif not nested.is_constant(torch, value):
                raise Error(f'input "{name}" is a {type(value).__name__}, and the inputs of a file are tensors',
                            code=2, notes=[
                    "lists, tuples, dicts and dataclasses of tensors are taken apart, and numbers, texts and None are "
                    "constants"])
        _check_names(module, self.names)
        self.plain = not self.positional and all(isinstance(value, torch.Tensor) for value in self.named.values())

    def _leaves(self):
        for name, value in (*self.positional, *self.named.items()):
            yield from nested.leaves(self.torch, name, value)

    def call(self, tensors):
        """(args, kwargs) of forward with `tensors` in the places of the examples."""
        left = iter(tensors)
        positional = [nested.rebuilt(self.torch, value, left) for _, value in self.positional]
        return positional, {name: nested.rebuilt(self.torch, value, left) for name, value in self.named.items()}


def _apart(value):
    """torch.export takes one tensor that stands for two inputs (labels=input_ids) as one input that is read twice."""
    return value.detach().clone().requires_grad_(value.requires_grad)


def _check_names(module, names):
    own = {*dict(module.named_parameters()), *dict(module.named_buffers())}
    for i, name in enumerate(names):
        if name in own:
            raise Error(f'input "{name}" is called as a parameter or buffer of {type(module).__name__}, and a file '
                        f'holds one of a '
                        f"name", code=2, notes=["give forward's argument another name"])
        if name in names[:i]:
            raise Error(f'two inputs are called "{name}", and a file holds one of a name', code=2,
                        notes=["give a key of the dicts another name"])


def _bound(module, inputs):
    """[(name, value)] of forward's positional-only arguments, and {name: value} of the others, both in the order of its
    arguments."""
    kinds = inspect.Parameter
    signature = list(inspect.signature(module.forward).parameters.values())
    forward, note = f"forward of {type(module).__name__}", "its arguments are " + ", ".join(map(str, signature))
    plain = [p for p in signature if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)]
    rest = next((p.name for p in signature if p.kind is kinds.VAR_POSITIONAL), None)
    if isinstance(inputs, collections.abc.Mapping):
        given, more = _by_keys(inputs, plain, rest, any(p.kind is kinds.VAR_KEYWORD for p in signature), forward, note)
    else:
        given, more = _by_position(inputs, plain, rest, forward, note)
    lacking = [p.name for p in plain if p.default is p.empty and p.name not in given]
    if lacking:
        raise Error(f'{forward} needs "{lacking[0]}", for which there is no example', code=2, notes=[note])
    first = [p for p in plain if p.kind is kinds.POSITIONAL_ONLY or (more and p.kind is kinds.POSITIONAL_OR_KEYWORD)]
    positional = [(p.name, given.pop(p.name, p.default)) for p in first if p.name in given or more]
    return positional + more, given


def _by_position(inputs, plain, rest, forward, note):
    values = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    names = [p.name for p in plain if p.kind is not p.KEYWORD_ONLY]
    if len(values) > len(names) and rest is None:
        raise Error(f"{len(values)} inputs for {forward}, which takes {len(names)}", code=2, notes=[note])
    return dict(zip(names, values)), [(f"{rest}.{i}", value) for i, value in enumerate(values[len(names):])]


def _by_keys(inputs, plain, rest, takes_more, forward, note):
    """In forward's order; what **kwargs takes comes last."""
    names = [p.name for p in plain]
    more = inputs[rest] if rest is not None and rest in inputs else ()
    for name in inputs:
        if name in names or name == rest:
            continue
        near = difflib.get_close_matches(str(name), [other for other in names if other not in inputs], 1, 0.8)
        if not takes_more or near or not isinstance(name, str):
            raise Error(f'{forward} has no argument "{name}"' + (f'; did you mean "{near[0]}"?' if near else ""),
                        code=2,
                        notes=[note])
    if not isinstance(more, (list, tuple)):
        raise Error(f'"{rest}" of {forward} takes any number of values, found a {type(more).__name__}; give a list',
                    code=2)
    given = {name: inputs[name] for name in names if name in inputs}
    given.update({name: value for name, value in inputs.items() if name not in names and name != rest})
    return given, [(f"{rest}.{i}", value) for i, value in enumerate(more)]
