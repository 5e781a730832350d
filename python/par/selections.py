"""Elements chosen by a mask, in forms whose shapes do not depend on data."""

import contextlib

from . import notes, wrapping
from .exporter import INT64

NAMES = ("__getitem__", "__setitem__", "nonzero", "argwhere", "where", "masked_select")


@contextlib.contextmanager
def noted(torch):
    """While the example runs: the places of what its masks choose are noted."""
    found, places_of = notes.Notes(), torch.Tensor.nonzero

    def noting(name, original):
        def called(*arguments, **named):
            masks = _masks(torch, name, arguments, named)
            if masks and not notes.is_traced(torch, masks):  # nor without memory
                found.add(notes.place(), [places_of(mask) for mask in masks])
            return original(*arguments, **named)

        return called

    with _patched(torch, noting):
        yield found


@contextlib.contextmanager
def exportable(torch, module, found, written):
    """Within, what a constant mask chooses has the places that `found` has. A tensor written where a mask of
    data says is masked_scatter, which has a translation."""

    def choosing(name, original):
        def called(*arguments, **named):
            masks = _masks(torch, name, arguments, named)
            if not masks or not notes.is_traced(torch, masks):
                return original(*arguments, **named)
            chosen = found.next(notes.place())
            if chosen is not None and all(notes.is_constant(torch, module, mask, written) for mask in masks):
                places = [
                    torch.tensor(each.tolist(), dtype=torch.int64).reshape(each.shape) for each in chosen
                ]
                return _by_places(torch, name, original, arguments, named, places)
            if name == "__setitem__" and _is_scatter(torch, *arguments):
                tensor, mask, values = arguments
                tensor.masked_scatter_(
                    mask.reshape(*mask.shape, *[1] * (tensor.ndim - mask.ndim)), values.to(tensor.dtype)
                )
                return None
            return original(*arguments, **named)

        return called

    begins = module.register_forward_pre_hook(lambda *_: found.rewind())
    try:
        with _patched(torch, choosing):
            yield
    finally:
        begins.remove()


def _masks(torch, name, arguments, named):
    """The masks of booleans of a call, and what nonzero is taken of."""

    def is_mask(value):
        return isinstance(value, torch.Tensor) and value.dtype is torch.bool and value.ndim > 0

    if name in ("__getitem__", "__setitem__"):
        index = arguments[1] if isinstance(arguments[1], tuple) else (arguments[1],)
        return [each for each in index if is_mask(each)]
    if name == "masked_select":
        mask = arguments[1] if len(arguments) > 1 else named["mask"]
        return [mask] if mask.shape == arguments[0].shape else []
    if (
        len(arguments) != 1
        or not isinstance(arguments[0], torch.Tensor)
        or named.keys() - {"as_tuple"}
        or arguments[0].ndim == 0
    ):
        return []
    return [arguments[0]]


def _by_places(torch, name, original, arguments, named, places):
    """The same call, with places in place of masks."""
    if name in ("__getitem__", "__setitem__"):
        tensor, index, *value = arguments
        rest = iter(places)
        taken = []
        for each in index if isinstance(index, tuple) else (index,):
            is_mask = isinstance(each, torch.Tensor) and each.dtype is torch.bool and each.ndim > 0
            taken += next(rest).unbind(1) if is_mask else [each]
        return original(tensor, tuple(taken), *value)
    if name == "masked_select":
        return arguments[0][places[0].unbind(1)]
    return places[0].unbind(1) if name == "where" or named.get("as_tuple") else places[0]


def _is_scatter(torch, tensor, mask, values):
    """A row of values for each place of a mask, in their order; a single row is for all places."""
    return (
        isinstance(mask, torch.Tensor)
        and isinstance(values, torch.Tensor)
        and values.ndim == 1 + tensor.ndim - mask.ndim
        and values.shape[0] > 1
    )


def _patched(torch, wrap):
    places = [
        (owner, name)
        for owner in (torch.Tensor, torch)
        for name in NAMES
        if hasattr(owner, name) and (owner, name) != (torch.Tensor, "where")
    ]
    return wrapping.wrapped(places, wrap)


def masked_scatter(self, mask, source):
    """Each place of the mask takes the element of the source whose number is the count of places before
    it."""
    from onnxscript import opset20 as op

    shape, flat = op.Shape(self), op.Constant(value_ints=[-1])
    mask = op.Expand(mask, shape)
    count = op.CumSum(op.Cast(op.Reshape(mask, flat), to=INT64), op.Constant(value_int=0))
    number = op.Max(op.Sub(count, op.Constant(value_int=1)), op.Constant(value_int=0))
    return op.Where(mask, op.Reshape(op.Gather(op.Reshape(source, flat), number, axis=0), shape), self)
