"""Shared by the translations of single operators."""

FLOAT, BOOL, DOUBLE, INT32, INT64, INT64_MAX = 1, 9, 11, 6, 7, 2**63 - 1  # ONNX's numbers of types


def theirs(name):
    """The exporter's own translation."""
    from onnxscript.function_libs.torch_lib.ops import core, linalg, nn

    return next(getattr(room, name) for room in (core, linalg, nn) if hasattr(room, name))


def like(op, value, tensor):
    """The number in the tensor's type."""
    return op.CastLike(op.Constant(value_float=float(value)), tensor)
