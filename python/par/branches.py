"""Branches on a tensor's value, which a file cannot hold: the one that the example takes is exported."""

import contextlib

from . import notes, wrapping


@contextlib.contextmanager
def noted(torch):
    """While the example runs: its conditions are noted, and are what they are."""
    found = notes.Notes()

    def noting(original):
        def asked(*arguments, **named):
            value = original(*arguments, **named)
            if isinstance(value, bool):
                found.add(notes.place(), value)
            return value

        return asked

    with _patched(torch, noting):
        yield found


@contextlib.contextmanager
def exportable(torch, module, found, written):
    """Within, conditions are those that `found` has. Yields the lines of those that are no constants."""
    lines, item = [], torch.Tensor.item

    def following(original):
        def asked(*arguments, **named):
            tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
            if not notes.is_traced(torch, tensors) or (
                original is item and arguments[0].dtype is not torch.bool
            ):
                return original(*arguments, **named)
            place = notes.place()
            value = found.next(place)
            if value is None:
                return original(*arguments, **named)
            if notes.line(place) not in lines and not all(
                notes.is_constant(torch, module, tensor, written) for tensor in tensors
            ):
                lines.append(notes.line(place))
            return value

        return asked

    begins = module.register_forward_pre_hook(lambda *_: found.rewind())
    try:
        with _patched(torch, following):
            yield lines
    finally:
        begins.remove()


def _patched(torch, wrap):
    """The functions that make a bool of tensors' values, wrapped."""
    names = ("equal", "allclose", "is_nonzero")
    places = [(torch.Tensor, name) for name in ("__bool__", "item", *names)] + [
        (torch, name) for name in names
    ]
    return wrapping.wrapped(places, lambda _, original: wrap(original))


def warning(lines, some):
    return (
        f"a branch on a tensor's value, of which the file holds the side that the example took: {some(lines)}; "
        f"torch.where holds both"
    )
