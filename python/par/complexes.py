"""Views and choices of complex tensors, which the exporter holds as pairs of reals in a last dim of 2."""

import contextlib
import itertools


@contextlib.contextmanager
def exportable(torch):
    """Within, the exporter's table has these translations. Its own argument for further ones takes only real
    tensors."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry as Registry

    own = vars(Registry)["from_torchlib"]

    def with_views(cls, *arguments, **named):
        registry = own.__get__(None, cls)(*arguments, **named)
        for operator, translation in _table(torch.ops.aten).items():
            registry.register_op(operator, translation, is_complex=True)
        return registry

    Registry.from_torchlib = classmethod(with_views)
    try:
        yield
    finally:
        Registry.from_torchlib = own


def _table(aten):
    return {
        aten.unsqueeze.default: unsqueeze,
        aten.squeeze.dims: squeeze,
        aten.expand.default: expand,
        aten.select.int: select,
        aten.index_select.default: index_select,
        aten.index.Tensor: index,
        aten.repeat.default: repeat,
        aten.einsum.default: einsum,
        aten.alias.default: same,
        aten.detach.default: same,
        aten.lift_fresh_copy.default: same,
    }


def _rank(self):
    return len(self.shape) - 1


def unsqueeze(self, dim):
    from onnxscript import opset20 as op

    return op.Unsqueeze(self, op.Constant(value_ints=[dim % (_rank(self) + 1)]))


def squeeze(self, dim):
    from onnxscript import opset20 as op

    gone = [each % _rank(self) for each in dim if self.shape[each % _rank(self)] == 1]
    return op.Squeeze(self, op.Constant(value_ints=gone)) if gone else op.Identity(self)


def expand(self, size, implicit=False):
    """-1 leaves a dim as it is, as 1 does in ONNX."""
    from onnxscript import opset20 as op

    sizes = [
        (
            op.Constant(value_ints=[max(each, 1)])
            if isinstance(each, int)
            else op.Reshape(each, op.Constant(value_ints=[1]))
        )
        for each in size
    ]
    return op.Expand(self, op.Concat(*sizes, op.Constant(value_ints=[2]), axis=0))


def repeat(self, repeats):
    from onnxscript import opset20 as op

    more = len(repeats) - _rank(self)
    if more:
        self = op.Unsqueeze(self, op.Constant(value_ints=list(range(more))))
    return op.Tile(self, op.Constant(value_ints=[*repeats, 1]))


def select(self, dim, index):
    from onnxscript import opset20 as op

    return op.Gather(self, op.Constant(value_int=index), axis=dim % _rank(self))


def index_select(self, dim, index):
    from onnxscript import opset20 as op

    return op.Gather(self, index, axis=dim % _rank(self))


def index(self, indices):
    """By one tensor of places."""
    from onnxscript import opset20 as op
    from .errors import Error

    given = [(dim, each) for dim, each in enumerate(indices) if each is not None]
    if len(given) != 1:
        raise Error(f"a complex tensor is indexed by {len(given)} tensors, and one has a translation")
    return op.Gather(self, given[0][1], axis=given[0][0])


def same(self):
    from onnxscript import opset20 as op

    return op.Identity(self)


def einsum(equation, tensors, path=None):
    """The sum over all choices of real and imaginary parts, a factor i for each imaginary one."""
    from onnxscript import opset20 as op

    def part(tensor, number):
        return op.Gather(tensor, op.Constant(value_int=number), axis=_rank(tensor))

    sums = [None, None]
    for chosen in itertools.product((0, 1), repeat=len(tensors)):
        term = op.Einsum(*(part(tensor, number) for tensor, number in zip(tensors, chosen)), equation=equation)
        turns = sum(chosen)
        if sums[turns % 2] is None:
            sums[turns % 2] = op.Neg(term) if turns % 4 > 1 else term
        else:
            sums[turns % 2] = (op.Sub if turns % 4 > 1 else op.Add)(sums[turns % 2], term)
    last = op.Constant(value_ints=[-1])
    return op.Concat(*(op.Unsqueeze(each, last) for each in sums), axis=-1)
