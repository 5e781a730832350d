"""Functions that the exporter writes by formulas which overflow, lose their gradient, or mean something else."""
import math

from .errors import Error
from .exporter import like, theirs

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
    """-(t max(log p, -100) + (1 - t) max(log(1 - p), -100)), without the gradient 0 / 0 of a probability that is 0 or 1."""
    from onnxscript import opset20 as op

    one = like(op, 1, self)
    terms = op.Add(op.Mul(target, _clamped_log(op, self)), op.Mul(op.Sub(one, target), _clamped_log(op, op.Sub(one, self))))
    return _weighted(op, op.Neg(terms), weight, reduction)


def logaddexp(self, other):
    """max(a, b) + log(1 + e^-|a - b|)."""
    from onnxscript import opset20 as op

    return op.Add(op.Max(self, other), _log1p_exp(op, op.Sub(self, other)))


def std(self, dim=None, correction=None, keepdim=False):
    """The root of the variance, whose gradient is 0 where all are equal, not 0 / 0."""
    from onnxscript import opset20 as op

    variance = theirs("aten_var_correction")(self, dim, correction, keepdim)
    zero = like(op, 0, self)
    varies = op.Greater(variance, zero)
    return op.Where(varies, op.Sqrt(op.Where(varies, variance, like(op, 1, self))), zero)


def atan2(self, other):
    """Of 0 and a negative number pi, of -0 (whose inverse is negative) -pi; the exporter's is -pi for both."""
    from onnxscript import opset20 as op

    zero = like(op, 0, self)
    behind = op.And(op.Equal(self, zero), op.Less(other, zero))
    below = op.Less(op.Reciprocal(self), zero)
    flat = op.Where(below, like(op, -math.pi, self), like(op, math.pi, self))
    return op.Where(behind, flat, theirs("aten_atan2")(self, other))


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
