"""Functions that are not smooth, with the gradient that PyTorch gives where they bend."""
from .exporter import like, theirs


def hardtanh(self, min_val=-1.0, max_val=1.0):
    """Cut off at both ends, where the gradient is 0 already; clamp's, as ONNX's Clip, is 1 there."""
    from onnxscript import opset20 as op

    low, high = like(op, min_val, self), like(op, max_val, self)
    above = op.Where(op.GreaterOrEqual(self, high), high, self)
    return op.Where(op.LessOrEqual(self, low), low, above)


def relu6(self):
    """hardtanh from 0 to 6."""
    return hardtanh(self, 0.0, 6.0)


def extreme(place, translation):
    """max or min along a dim: of equal ones the first is taken, and has the gradient; amax and amin, as ONNX's
    reductions, give each a share."""

    def taken(self, dim, keepdim=False):
        from onnxscript import opset20 as op

        if len(self.shape) == 0:
            return theirs(translation)(self, dim, keepdim)
        where = getattr(op, place)(self, axis=dim, keepdims=1)
        values = op.GatherElements(self, where, axis=dim)
        if keepdim:
            return values, where
        axis = op.Constant(value_ints=[dim])
        return op.Squeeze(values, axis), op.Squeeze(where, axis)

    return taken
