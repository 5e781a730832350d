"""Tensor.data, which torch.export loses: what forward computes from it would be a constant without a
value."""

import contextlib

from . import notes


@contextlib.contextmanager
def exportable(torch):
    """Within, `x.data` of a tensor that is traced is x.detach(), whose gradient is none either."""
    own = torch.Tensor.data

    def read(tensor):
        return tensor.detach() if notes.is_traced(torch, [tensor]) else own.__get__(tensor)

    torch.Tensor.data = property(read, lambda tensor, value: own.__set__(tensor, value))
    try:
        yield
    finally:
        del torch.Tensor.data
