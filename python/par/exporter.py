"""What translations of single operators share."""

BOOL, DOUBLE, INT32, INT64, INT64_MAX = 9, 11, 6, 7, 2**63 - 1  # ONNX's numbers of types


def theirs(name):
    """The exporter's own translation."""
    from onnxscript.function_libs.torch_lib.ops import core, nn

    return getattr(nn, name, None) or getattr(core, name)


def like(op, value, tensor):
    """The number in the tensor's type."""
    return op.CastLike(op.Constant(value_float=float(value)), tensor)
