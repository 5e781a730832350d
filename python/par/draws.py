"""Random numbers, drawn anew in each step as PyTorch draws them."""


def uniform(self, from_=0.0, to=1.0, generator=None):
    """Tensor.uniform_."""
    from onnxscript import opset20 as op

    return op.RandomUniformLike(self, low=float(from_), high=float(to))


def randperm(n, dtype=None, layout=None, device=None, pin_memory=None):
    """Where n uniform numbers stand when they are sorted: each order is as likely but for equal numbers (n *
    n / 2^25)."""
    from onnxscript import opset20 as op

    drawn = op.RandomUniform(shape=[n], dtype=1)
    _, order = op.TopK(drawn, op.Constant(value_ints=[n]))
    return order
