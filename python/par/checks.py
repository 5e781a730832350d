"""Checks of arguments, which the example has passed: a file holds none of them."""

import contextlib

from .exporter import BOOL, INT32


@contextlib.contextmanager
def exportable(torch):
    """Within, torch.distributions validates nothing, and checks of all elements of a tensor (those of
    transformers too) pass."""
    distribution = torch.distributions.Distribution
    validates, check, check_with = (
        distribution._validate_args,
        torch._check_tensor_all,
        torch._check_tensor_all_with,
    )
    distribution._validate_args = False
    # Each is a function of its own: dynamo, which traces the steps of an LSTM, has a handler for each.
    torch._check_tensor_all = lambda *_, **__: None
    torch._check_tensor_all_with = lambda *_, **__: None
    try:
        yield
    finally:
        distribution._validate_args = validates
        torch._check_tensor_all, torch._check_tensor_all_with = check, check_with


def is_all_true(self):
    """ONNX for the ops of a check that are left in the graph, which the exporter lacks."""
    from onnxscript import opset20 as op

    return op.Cast(op.ReduceMin(op.Cast(self, to=INT32), keepdims=0), to=BOOL)


def is_any_true(self):
    """Likewise."""
    from onnxscript import opset20 as op

    return op.Cast(op.ReduceMax(op.Cast(self, to=INT32), keepdims=0), to=BOOL)
