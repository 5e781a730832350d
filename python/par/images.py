"""Pools, pads and samples of images as PyTorch computes them, where ONNX, or the exporter, means something else."""
import math

from .exporter import DOUBLE, INT64, INT64_MAX, like, theirs

CUBIC, ZEROS, AT_BORDER = 2, 0, 1  # PyTorch's numbers of modes and paddings
BORDER = 4  # pixels


def average_pool(dims):
    """The exporter drops divisor_override without a word: the sum of a window, whatever part of it is padding, over
    this number."""
    def translated(self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True,
                   divisor_override=None):
        from onnxscript import opset20 as op

        if divisor_override is None:
            return theirs(f"aten_avg_pool{dims}d")(self, kernel_size, stride, padding, ceil_mode, count_include_pad)
        kernel, padding = _each(kernel_size, dims), _each(padding, dims)
        strides = _each(stride or kernel, dims)
        behind = [_behind(*sizes, ceil_mode) for sizes in zip(self.shape[-dims:], kernel, strides, padding)]
        batched = self if len(self.shape) == dims + 2 else op.Unsqueeze(self, op.Constant(value_ints=[0]))
        padded = op.Pad(batched, op.Constant(value_ints=[0, 0, *padding, 0, 0, *behind]))
        means = op.AveragePool(padded, kernel_shape=kernel, strides=strides)
        sums = op.Mul(means, like(op, math.prod(kernel) / divisor_override, self))
        return sums if batched is self else op.Squeeze(sums, op.Constant(value_ints=[0]))
    return translated


def _behind(size, kernel, stride, padding, ceil_mode):
    """Padding after a dim, so that all its windows are complete. With ceil_mode the last one may hang over, but begins
    within the dim or the padding in front of it."""
    if not ceil_mode:
        return padding
    count = -(-(size + 2 * padding - kernel) // stride) + 1
    if (count - 1) * stride >= size + padding:
        count -= 1
    return max(0, (count - 1) * stride + kernel - size - padding)


def _each(numbers, dims):
    """One number for each dim, as PyTorch lets one stand for all."""
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return numbers * dims if len(numbers) == 1 else numbers


def resize(name):
    """With aligned corners, ONNX's Resize by factors uses the sizes before rounding, PyTorch those after it."""
    def translated(self, output_size, align_corners, scale_factors=None):
        from onnxscript import opset20 as op

        if align_corners and scale_factors is not None:
            dims = len(scale_factors)
            last = op.Cast(op.Shape(self, start=-dims), to=DOUBLE)
            # As PyTorch: multiplied in double, the factor as it is written.
            output_size = op.Cast(op.Floor(op.Mul(last, op.Constant(value=_doubles(scale_factors)))), to=INT64)
            scale_factors = None
        return theirs(name)(self, output_size, align_corners, scale_factors)
    return translated


def _doubles(numbers):
    import onnx_ir

    return onnx_ir.tensor(list(map(float, numbers)), dtype=onnx_ir.DataType.DOUBLE)


def pad(self, pad, mode="constant", value=None):
    """A circular pad that cuts elsewhere repeats what is left; ONNX's would repeat what was cut."""
    from onnxscript import opset20 as op

    if mode != "circular" or min(pad) >= 0:
        return theirs("aten_pad")(self, pad, mode, value)
    axes = [len(self.shape) - 1 - dim for dim in range(len(pad) // 2)]
    begins, ends = [max(0, -n) for n in pad[::2]], [n if n < 0 else INT64_MAX for n in pad[1::2]]
    left = op.Slice(self, *(op.Constant(value_ints=numbers) for numbers in (begins, ends, axes)))
    amounts = [max(0, n) for n in (*pad[::2], *pad[1::2])]
    return op.Pad(left, op.Constant(value_ints=amounts), None, op.Constant(value_ints=axes), mode="wrap")


def grid_sample(input, grid, interpolation_mode, padding_mode, align_corners):
    """A cubic sample beside the border reads the pixels there as often as its window asks for; ONNX's first moves the
    window inside. So the image gets a border that no window leaves: two pixels outside all that is read is the
    border."""
    from onnxscript import opset20 as op

    if (interpolation_mode, padding_mode) != (CUBIC, AT_BORDER):
        return theirs("aten_grid_sampler")(input, grid, interpolation_mode, padding_mode, align_corners)
    sizes = input.shape[:1:-1]  # as a grid has them, x first
    size, last = (op.CastLike(op.Constant(value_floats=[float(n + more) for n in sizes]), grid)
                  for more in (0, 2 * BORDER - 1))
    half, one = like(op, 0.5, grid), like(op, 1, grid)
    across = op.Add(grid, one)  # 0 to 2
    at = (op.Mul(op.Mul(across, half), op.Sub(size, one)) if align_corners
          else op.Sub(op.Mul(op.Mul(across, size), half), half))
    at = op.Max(op.Min(at, op.Add(size, one)), like(op, -2, grid))
    wide = op.Pad(input, op.Constant(value_ints=([0, 0] + [BORDER] * len(sizes)) * 2), mode="edge")
    moved = op.Sub(op.Div(op.Mul(op.Add(at, like(op, BORDER, grid)), like(op, 2, grid)), last), one)
    return theirs("aten_grid_sampler")(wide, moved, CUBIC, ZEROS, True)
