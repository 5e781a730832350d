"""Functions that the exporter writes by formulas which overflow, lose their gradient, or mean something else."""
import math

from .errors import Error
from .exporter import FLOAT, like, theirs

REDUCTIONS = ("none", "mean", "sum")


def log_sigmoid(self):
    """min(x, 0) - log(1 + e^-|x|), where the exporter's log(sigmoid(x)) is -inf below -88."""
    from onnxscript import opset20 as op

    return op.Sub(op.Min(self, like(op, 0, self)), _log1p_exp(op, self))


def bce_with_logits(input, target, weight=None, pos_weight=None, reduction=1):
    """(1 - t) x + (1 + (w - 1) t) (log(1 + e^-|x|) + max(-x, 0)), as torch.nn.BCEWithLogitsLoss says."""
    from onnxscript import opset20 as op

    one, zero = like(op, 1, input), like(op, 0, input)
    logs = op.Add(_log1p_exp(op, input), op.Max(op.Neg(input), zero))
    if pos_weight is not None:
        logs = op.Mul(logs, op.Add(one, op.Mul(op.Sub(pos_weight, one), target)))
    return _weighted(op, op.Add(op.Mul(op.Sub(one, target), input), logs), weight, reduction)


def bce(self, target, weight=None, reduction=1):
    """-(t max(log p, -100) + (1 - t) max(log(1 - p), -100)), without the gradient 0 / 0 of a probability that is 0 or
    1."""
    from onnxscript import opset20 as op

    one = like(op, 1, self)
    terms = op.Add(op.Mul(target, _clamped_log(op, self)),
                   op.Mul(op.Sub(one, target), _clamped_log(op, op.Sub(one, self))))
    return _weighted(op, op.Neg(terms), weight, reduction)


def logaddexp(self, other):
    """max(a, b) + log(1 + e^-|a - b|)."""
    from onnxscript import opset20 as op

    return op.Add(op.Max(self, other), _log1p_exp(op, op.Sub(self, other)))


def logaddexp2(self, other):
    """max(a, b) + log2(1 + 2^-|a - b|)."""
    from onnxscript import opset20 as op

    rate = like(op, math.log(2), self)
    apart = op.Mul(op.Sub(self, other), rate)
    return op.Add(op.Max(self, other), op.Div(_log1p_exp(op, apart), rate))


def logcumsumexp(self, dim):
    """Each place's sum over those up to it, where the exporter's is -inf 88 below the largest of all: n x n numbers a
    row, since the largest so far differs from place to place."""
    from onnxscript import opset20 as op

    rank = len(self.shape)
    if rank == 0:
        return op.Identity(self)
    dim %= rank
    length = op.Shape(self, start=dim, end=dim + 1)
    square = op.Expand(like(op, 1, self), op.Concat(length, length, axis=0))
    behind = op.Equal(op.Trilu(square, upper=0), like(op, 0, self))
    if dim < rank - 1:
        behind = op.Reshape(behind, op.Concat(length, length, op.Constant(value_ints=[1] * (rank - 1 - dim)), axis=0))
    pairs = op.Where(behind, like(op, -math.inf, self), op.Unsqueeze(self, op.Constant(value_ints=[dim])))
    return op.ReduceLogSumExp(pairs, op.Constant(value_ints=[dim + 1]), keepdims=0)


def vector_norm(self, ord=2.0, dim=None, keepdim=False, dtype=-1):
    """The root of a sum of powers, whose gradient is 0 where all are zero, not infinity times 0."""
    from onnxscript import opset20 as op

    if ord in (0, 1, 2, math.inf, -math.inf):
        return theirs("aten_linalg_vector_norm")(self, ord, dim, keepdim, dtype)
    self = self if dtype in (-1, None) else op.Cast(self, to=dtype)
    zero, one = like(op, 0, self), like(op, 1, self)

    def power(base, exponent):
        some = op.Greater(base, zero)
        return op.Where(some, op.Pow(op.Where(some, base, one), like(op, exponent, self)), zero)

    axes = None if dim is None or len(self.shape) == 0 else op.Constant(value_ints=[dim] if isinstance(dim, int)
                                                                        else list(dim))
    return power(op.ReduceSum(power(op.Abs(self), ord), axes, keepdims=int(keepdim)), 1 / ord)


def std(self, dim=None, correction=None, keepdim=False):
    """The root of the variance, whose gradient is 0 where all are equal, not 0 / 0."""
    from onnxscript import opset20 as op

    variance = theirs("aten_var_correction")(self, dim, correction, keepdim)
    zero = like(op, 0, self)
    varies = op.Greater(variance, zero)
    return op.Where(varies, op.Sqrt(op.Where(varies, variance, like(op, 1, self))), zero)


def atan2(self, other):
    """atan2 of 0 and a negative number is pi, of -0 (whose inverse is negative) -pi; the exporter's is -pi for both."""
    from onnxscript import opset20 as op

    zero = like(op, 0, self)
    behind = op.And(op.Equal(self, zero), op.Less(other, zero))
    below = op.Less(op.Reciprocal(self), zero)
    flat = op.Where(below, like(op, -math.pi, self), like(op, math.pi, self))
    return op.Where(behind, flat, theirs("aten_atan2")(self, other))


def angle(self):
    """pi of what is negative, whose gradient is 0; the exporter's division has none at 0."""
    from onnxscript import opset20 as op

    if not self.dtype.is_floating_point():
        self = op.Cast(self, to=FLOAT)
    zero = like(op, 0, self)
    return op.Where(op.Less(self, zero), like(op, math.pi, self), op.Where(op.IsNaN(self), self, zero))


def sinc(self):
    """sin(pi x) / (pi x), which is 1 at 0."""
    from onnxscript import opset20 as op

    middle, one = op.Equal(self, like(op, 0, self)), like(op, 1, self)
    turned = op.Mul(op.Where(middle, one, self), like(op, math.pi, self))
    return op.Where(middle, one, op.Div(op.Sin(turned), turned))


def scatter_reduce(self, dim, index, src, reduce, include_self=True):
    """The mean is a sum over a count; the exporter writes the last value in its place."""
    from onnxscript import opset20 as op

    if reduce != "mean":
        return theirs("aten_scatter_reduce")(self, dim, index, src, reduce, include_self)
    if not self.dtype.is_floating_point():
        raise Error("scatter_reduce with the mean of integers, which rounds down, is not supported")
    add = {"axis": dim, "reduction": "add"}
    zero, one = like(op, 0, self), like(op, 1, self)
    ones = op.Expand(one, op.Shape(src))
    if include_self:
        return op.Div(op.ScatterElements(self, index, src, **add),
                      op.ScatterElements(op.Expand(one, op.Shape(self)), index, ones, **add))
    none = op.Expand(zero, op.Shape(self))
    counts = op.ScatterElements(none, index, ones, **add)
    means = op.Div(op.ScatterElements(none, index, src, **add), op.Max(counts, one))
    return op.Where(op.Greater(counts, zero), means, self)


def _log1p_exp(op, x):
    """log(1 + e^-|x|)."""
    return op.Log(op.Add(op.Exp(op.Neg(op.Abs(x))), like(op, 1, x)))


def _clamped_log(op, p):
    positive, least = op.Greater(p, like(op, 0, p)), like(op, -100, p)
    return op.Where(positive, op.Max(op.Log(op.Where(positive, p, like(op, 1, p))), least), least)


def _weighted(op, losses, weight, reduction):
    losses = losses if weight is None else op.Mul(losses, weight)
    if REDUCTIONS[reduction] == "none":
        return losses
    return (op.ReduceMean if REDUCTIONS[reduction] == "mean" else op.ReduceSum)(losses, keepdims=0)
