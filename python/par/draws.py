"""Random numbers: those that are drawn again in each step, as in PyTorch, and those that are not."""

import contextlib
import random
import sys


@contextlib.contextmanager
def watched():
    """While the example runs: yields a list of what is drawn from outside of PyTorch, of which the exporter's
    run then draws the same."""
    numpy, found = sys.modules.get("numpy"), []
    before = random.getstate(), numpy and numpy.random.get_state(legacy=False)
    try:
        yield found
    finally:
        if random.getstate() != before[0]:
            found.append("random")
            random.setstate(before[0])
        if numpy and str(numpy.random.get_state(legacy=False)) != str(before[1]):
            found.append("numpy.random")
            numpy.random.set_state(before[1])


def warning(found):
    return (
        f"forward draws from {' and '.join(found)}: the file holds one draw for all steps; "
        "torch.rand and the like are drawn again in each"
    )


def uniform(self, from_=0.0, to=1.0, generator=None):
    """Tensor.uniform_."""
    from onnxscript import opset20 as op

    return op.RandomUniformLike(self, low=float(from_), high=float(to))


def randperm(n, dtype=None, layout=None, device=None, pin_memory=None):
    """The sorting order of n uniform numbers: all orders are equally likely, except for equal numbers (n * n /
    2^25)."""
    from onnxscript import opset20 as op

    drawn = op.RandomUniform(shape=[n], dtype=1)
    _, order = op.TopK(drawn, op.Constant(value_ints=[n]))
    return order
